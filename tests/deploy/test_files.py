"""The files of deploy/, held against the programs and schemas that read them."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from compose_spec import PyCompose
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from kustomized import build
from processes import LIMIT
from prometheus_client import CollectorRegistry
from system_tools import tool

from online_svm import __version__
from workers.cli.app import application
from workers.config.environment import PREFIX, PROCESS_ENVIRONMENT
from workers.config.settings import WorkerSettings
from workers.errors import Unavailable
from workers.feed.position import START
from workers.feed.selection import Shard
from workers.feed.state import Commit
from workers.feed.state_fields import PendingLabels
from workers.monitor.metrics import WorkerMetrics
from workers.monitor.watch import WorkerWatch
from workers.monitor.webhook import Webhook
from workers.monitor.webhook_post import Receiver
from workers.reading.lag import Lag
from workers.reading.status import FeedStatus

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
OVERLAYS = ("small", "production", "shards", "recorded", "http")
FOLDERS = ["base", *(f"overlays/{name}" for name in OVERLAYS)]
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
OURS = {"worker", "dashboard", "follow"}
RECORDED, HTTP = (KUBERNETES / f"overlays/{name}" for name in ("recorded", "http"))


def run(*command, **options):
    told = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, **options)
    return told.returncode, told.stdout + told.stderr


def is_setting(name):
    """Whether an environment variable is one that this program knows, or none of its own."""
    known = {PREFIX + field.upper() for field in WorkerSettings.model_fields}
    return not name.startswith(PREFIX) or name in known | {*PROCESS_ENVIRONMENT}


# The image


def test_hadolint_has_nothing_to_say_against_the_dockerfile():
    hadolint = [str(Path(sys.prefix) / "bin/hadolint"), "--failure-threshold", "warning"]
    assert run(*hadolint, DEPLOY / "docker/Dockerfile")[0] == 0


def test_the_image_runs_as_a_user_without_rights_and_copies_what_there_is():
    text = (DEPLOY / "docker/Dockerfile").read_text()
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["10001:10001"]
    own = [line.split()[1:-1] for line in text.splitlines() if re.match("COPY (?!.*--from)", line)]
    copied = [word for words in own for word in words if word[:2] != "--"]
    assert [path for path in copied if not (ROOT / path).exists()] == []
    let_in = (DEPLOY / "docker/Dockerfile.dockerignore").read_text().splitlines()
    assert {f"!{path}" for path in copied} <= set(let_in)
    version = re.search(r"^ARG PYTHON=(3\.\d+)$", text, re.MULTILINE)[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


# Compose


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_the_compose_file_is_one_by_the_specification():
    plain = (DEPLOY / "compose.yaml").read_text().replace("${FEED:?name the feed}", "feed")
    PyCompose.from_yaml(yaml.safe_dump(yaml.safe_load(plain))).validate()


@pytest.mark.parametrize("service", compose()["services"].values(), ids=compose()["services"])
def test_a_container_has_no_rights_and_no_public_port(service):
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert not service["image"].endswith(":latest")
    assert [name for name in service.get("environment", ()) if not is_setting(name)] == []
    mounts = [volume.split(":")[0] for volume in service.get("volumes", ())]
    assert [path for path in mounts if path[0] == "." and not (DEPLOY / path).exists()] == []


def test_the_secrets_of_the_compose_file_are_those_that_the_script_makes(tmp_path):
    code, said = run("sh", DEPLOY / "make-secrets", tmp_path)
    assert code == 0, said
    paths = [Path(secret["file"]) for secret in compose()["secrets"].values()]
    assert [path for path in paths if not (tmp_path / path.name).is_file()] == []
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert run("sh", DEPLOY / "make-secrets", tmp_path)[0] == 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == len(before)


def example():
    """Return the settings of the example."""
    found = tomllib.loads((DEPLOY / "worker.toml").read_text())
    return WorkerSettings(**found["predictor"], **found["worker"])


# systemd


@pytest.fixture
def units(tmp_path):
    """The units, with a program that this machine has."""
    for path in (DEPLOY / "systemd").iterdir():
        text = path.read_text().replace("/opt/online-svm/bin/online-svm", "/bin/true")
        (tmp_path / path.name.replace("@", "@fraud")).write_text(text)
    return sorted(map(str, tmp_path.iterdir()))


def test_systemd_takes_the_units_and_finds_little_exposed(units):
    analyze = tool("systemd-analyze", "systemd")
    assert run(analyze, "verify", *units) == (0, "")
    for unit in (path for path in units if path.endswith(".service")):
        # Of 10; 2 and less counts as well protected.
        code, said = run(analyze, "security", "--offline=true", "--threshold=20", unit)
        assert code == 0, said[-300:]


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_a_unit_sets_known_options_and_gives_time_to_stop(unit):
    """A Redis elsewhere may come up later than this machine; without it a start exits with 2."""
    text = unit.read_text()
    given = dict(re.findall(r"^(?:Environment=)?(\w+)=(.+)$", text, re.MULTILINE))
    assert all(is_setting(name) for name in re.findall(r"^Environment=(\w+)=", text, re.MULTILINE))
    ends_it = str(Unavailable.exit_code) in given.get("RestartPreventExitStatus", "").split()
    assert ends_it == (unit.stem in ("online-svm@", "online-svm-follow@"))
    if ends_it and unit.stem != "online-svm-follow@":  # which waits for Redis as long as it takes
        assert WorkerSettings(wait_redis=given[f"{PREFIX}WAIT_REDIS"]).wait_redis == 86_400
    if unit.stem == "online-svm@":
        assert float(given["TimeoutStopSec"]) > example().grace
        grace = compose()["services"]["worker"]["stop_grace_period"].removesuffix("s")
        assert float(grace) > example().grace


# Kubernetes


def of_kind(folder, *kinds):
    """Return the resources of these kinds in a folder, by name."""
    return {each["metadata"]["name"]: each for each in build(folder) if each["kind"] in kinds}


def pods(folder):
    """Return the templates of all pods of a folder."""
    jobs = [each["spec"]["jobTemplate"]["spec"] for each in of_kind(folder, "CronJob").values()]
    sets = [each["spec"] for each in of_kind(folder, "StatefulSet", "Deployment").values()]
    return [spec["template"] for spec in sets + jobs]


def worker_toml(folder):
    """Return the settings file in a folder."""
    maps = [each["data"] for each in of_kind(folder, "ConfigMap").values()]
    (found,) = [tomllib.loads(data["worker.toml"]) for data in maps if "worker.toml" in data]
    return found


@pytest.fixture(params=FOLDERS)
def folder(request):
    return KUBERNETES / request.param


def test_each_resource_is_one_by_the_schema_of_kubernetes(folder):
    from kubernetes_validate import validate  # takes seconds to load where every extra is installed

    for resource in build(folder):
        validate(resource, "1.30", strict=True)


def test_a_pod_is_confined(folder):
    for pod in pods(folder):
        spec = pod["spec"]
        (container,) = spec["containers"]
        confined = container["securityContext"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert confined["readOnlyRootFilesystem"] is True
        assert confined["allowPrivilegeEscalation"] is False
        assert confined["capabilities"] == {"drop": ["ALL"]}
        has_endpoint = spec.get("restartPolicy") != "Never" and container["name"] != "follow"
        probes = set() if not has_endpoint else {"startupProbe", "livenessProbe", "readinessProbe"}
        assert probes <= set(container)
        assert container["resources"]["limits"]["memory"]
        names = [variable["name"] for variable in container.get("env", ())]
        assert [name for name in names if not is_setting(name)] == []
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        claims = {"data"} if "redis" in container["name"] else set()
        assert mounted == {volume["name"] for volume in spec["volumes"]} | claims


def test_every_selector_finds_a_pod(folder):
    labels = [pod["metadata"]["labels"].items() for pod in pods(folder)]
    for resource in build(folder):
        spec = resource.get("spec", {})
        chosen = spec.get("selector") or spec.get("podSelector") or {}
        wanted = chosen.get("matchLabels") or (chosen if resource["kind"] == "Service" else {})
        assert any(wanted.items() <= pod for pod in labels), resource["metadata"]["name"]


def test_the_settings_in_kubernetes_are_taken_and_serve_the_probes(folder):
    settings = worker_toml(folder)
    (worker,) = [pod for pod in pods(folder) if pod["spec"]["containers"][0]["name"] == "worker"]
    container = worker["spec"]["containers"][0]
    given = {each["name"].removeprefix(PREFIX).lower(): each["value"] for each in container["env"]}
    given.pop("feed")
    taken = WorkerSettings(**settings["predictor"], **settings["worker"] | given)
    assert taken.metrics == f"0.0.0.0:{container['ports'][0]['containerPort']}"
    paths = [container[f"{probe}Probe"]["httpGet"]["path"] for probe in ("liveness", "readiness")]
    assert paths == ["/livez", "/readyz"]
    assert worker["spec"]["terminationGracePeriodSeconds"] > taken.grace


@pytest.mark.parametrize("name", ["small", "production", "recorded", "http"])
def test_each_secret_that_a_pod_mounts_is_one_that_the_readme_creates(name):
    readme = (DEPLOY / "README.md").read_text()
    created = dict(re.findall(r"create secret generic (\S+) --from-file=(\S+)=secrets/\2", readme))
    for pod in pods(KUBERNETES / "overlays" / name):
        secrets = [each["secret"] for each in pod["spec"]["volumes"] if "secret" in each]
        assert {secret["secretName"] for secret in secrets} <= set(created)
        (container,) = pod["spec"]["containers"]
        files = [Path(each["value"]).name for each in container.get("env", ())
                 if each["name"].endswith("PASSWORD_FILE")]  # fmt: skip
        assert set(files) <= set(created.values())


def test_redis_in_kubernetes_has_the_settings_of_the_others():
    def lines(text):
        return [line for line in text.splitlines() if line and not re.match("#|bind ", line)]

    maps = [each["data"] for each in of_kind(KUBERNETES / "base", "ConfigMap").values()]
    (found,) = [data["redis.conf"] for data in maps if "redis.conf" in data]
    assert lines(found) == lines((DEPLOY / "redis/redis.conf").read_text())


def test_the_pods_of_shards_own_each_feed_once_between_them():
    worker = of_kind(KUBERNETES / "overlays/shards", "StatefulSet")["online-svm-worker"]["spec"]
    arguments = worker["template"]["spec"]["containers"][0]["args"]
    text = arguments[arguments.index("--shard") + 1]
    shards = [Shard.parse(text, f"online-svm-worker-{i}") for i in range(worker["replicas"])]
    for feed in (f"sensors-{number}" for number in range(100)):
        assert sum(shard.owns(feed) for shard in shards) == 1


def test_a_recorded_feed_publishes_states_and_waits_for_its_recording():
    settings = worker_toml(RECORDED)["worker"]
    assert settings["publish_every"] > 0
    assert settings["downstream"] == "block"


@pytest.mark.parametrize("overlay", [RECORDED, HTTP], ids=lambda path: path.name)
def test_pods_that_ask_redis_are_let_in_there(overlay):
    redis = {"app.kubernetes.io/name": "online-svm-redis"}
    policies = [each["spec"] for each in of_kind(overlay, "NetworkPolicy").values()]
    rules = [
        rule["podSelector"].get("matchLabels", {}).items()
        for policy in policies
        if policy["podSelector"].get("matchLabels") == redis
        for ingress in policy["ingress"]
        for rule in ingress["from"]
    ]
    for pod in pods(overlay):
        labels = pod["metadata"]["labels"].items()
        assert redis.items() <= labels or any(rule <= labels for rule in rules), labels


def test_ingress_and_autoscaler_name_what_there_is():
    (ingress,) = of_kind(HTTP, "Ingress").values()
    backends = [path["backend"]["service"] for rule in ingress["spec"]["rules"]
                for path in rule["http"]["paths"]]  # fmt: skip
    services = of_kind(HTTP, "Service")
    for backend in backends:
        named = [port["name"] for port in services[backend["name"]]["spec"]["ports"]]
        assert backend["port"]["name"] in named
    (scaler,) = of_kind(HTTP, "HorizontalPodAutoscaler").values()
    scaled = of_kind(HTTP, "Deployment")[scaler["spec"]["scaleTargetRef"]["name"]]["spec"]
    assert "replicas" not in scaled  # which would undo what the autoscaler did
    assert scaled["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]


def test_the_gateway_takes_the_tokens_that_the_script_makes(tmp_path):
    assert run("sh", DEPLOY / "make-secrets", tmp_path)[0] == 0
    token = (tmp_path / "gateway.token").read_text()
    found = tomllib.loads((tmp_path / "tokens.toml").read_text())["token"]
    assert found == [{"token": token, "feeds": ["*"], "rights": ["ask", "label", "read"]}]


def commands_of_deploy():
    """Return image and arguments of each container and unit that runs this program, by its name."""
    for pod in [*pods(RECORDED), *pods(HTTP)]:
        container = pod["spec"]["containers"][0]
        if container["name"] in OURS or container["image"].startswith("online-svm:"):
            yield f"kubernetes {container['name']}", container["image"], container["args"]
    for name, service in compose()["services"].items():
        if name in OURS or service["image"].startswith("online-svm:"):
            yield f"compose {name}", service["image"], service["command"]
    for path in UNITS:
        (line,) = re.findall(r"^ExecStart=(.*)$", path.read_text(), re.MULTILINE)
        yield path.name, None, line.split()[1:]


@pytest.mark.parametrize("named", list(commands_of_deploy()), ids=lambda named: named[0])
def test_a_deployment_runs_this_version_with_arguments_of_the_command(named):
    _, image, (command, *given) = named
    assert image in (None, f"online-svm:{__version__}")
    parsed = application([command]).commands[command]
    plain = [re.sub(r"\$\(FEED\)|\$\{FEED:[^}]*\}|%i", "fraud", text) for text in given]
    parsed.make_context(command, list(plain))


def test_every_alert_has_its_runbook_and_each_runbook_its_alert():
    rules = yaml.safe_load((DEPLOY / "prometheus/rules.yml").read_text())
    alerts = [
        each["alert"] for group in rules["groups"] for each in group["rules"] if "alert" in each
    ]
    told = (DEPLOY / "README.md").read_text().partition("\n## When it alerts\n")[2]
    assert re.findall(r"^### (OnlineSvm\w+)$", told, re.MULTILINE) == alerts


# Grafana and the names of the metrics


class _Seen:
    """A sample of a feed that has everything."""

    trouble = None

    def get(self, _sources, _in_detail):
        test = {"kind": "calibration", "scope": "overall", "log_wealth": 1.0, "threshold": 4.0}
        figures = {"accuracy": 0.9, "lower": 0.8, "probability": 0.85, "upper": 0.9, "z": 1.0}
        report = {
            "scored": 9,
            "windowed": {"overall": figures},
            "monitors": {"open": [], "notices": [], "tests": [test]},
        }
        lag = Lag(0, False, 0.0, PendingLabels(1, 1, 0, 10**9))
        answer = {"guarantee": "exact"}
        return {
            "f": FeedStatus(feed="f", now=1.0, n=1, epoch=1, lag=lag, report=report, answer=answer)
        }


def exported():
    """Return the names of all series that a worker exports."""
    registry = CollectorRegistry()
    watch = WorkerWatch()
    metrics = watch.on_feed_added("f")
    metrics.posts = Webhook("redis://127.0.0.1:1", Receiver("http://127.0.0.1:1/")).add("f")
    metrics.posts.failures["status 500"] = 1
    registry.register(WorkerMetrics(watch, _Seen()))
    metrics.committed(Commit(1, START, START), 0.1)
    names = {sample.name for family in registry.collect() for sample in family.samples}
    return {name for name in names if not name.endswith("_created")}  # a worker serves none


def used(text):
    return set(re.findall(r"\b(?<!:)online_svm_[a-z_]+", text)) - {"online_svm_"}


def test_exported_metrics_are_those_of_alerts_board_and_readme():
    rules = used((DEPLOY / "prometheus/rules.yml").read_text())
    board = used((DEPLOY / "grafana/boards/feed.json").read_text())
    assert len(rules) > 5
    assert len(board) > 10
    assert (rules | board) - exported() == set()
    told = set(re.findall(r"`(online_svm_\w+)`", (DEPLOY / "README.md").read_text()))
    histograms = {name.removesuffix("_bucket") for name in exported() if name.endswith("_bucket")}
    parts = {f"{name}_{part}" for name in histograms for part in ("bucket", "count", "sum")}
    assert (exported() | histograms) - parts - told == set()


def board():
    return json.loads((DEPLOY / "grafana/boards/feed.json").read_text())


NOT_IN_THE_MODEL = {"titleFormat", "step"}  # what an annotation says to Prometheus alone


def lost(given, kept):
    """Yield the members that a model does not know."""
    if isinstance(given, dict):
        for name, value in given.items():
            if name not in kept:
                yield name
            else:
                yield from lost(value, kept[name])
    elif isinstance(given, list):
        for one, other in zip(given, kept, strict=True):
            yield from lost(one, other)


def test_the_board_is_one_by_grafanas_model():
    kept = json.loads(JSONEncoder().encode(Dashboard.from_json(board())))
    assert set(lost(board(), kept)) <= NOT_IN_THE_MODEL


def test_the_panels_do_not_overlap_and_each_says_what_it_shows():
    cells = []
    for panel in board()["panels"]:
        assert panel["description"].endswith(".")
        at = panel["gridPos"]
        columns, rows = range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])
        cells += [(x, y) for x in columns for y in rows]
        assert columns[-1] < 24
    assert len(set(cells)) == len(cells)
    ids = [panel["id"] for panel in board()["panels"]]
    assert len(set(ids)) == len(ids)


def test_every_query_of_the_board_is_promql_of_a_source_that_is_provisioned(tmp_path):
    sources = yaml.safe_load(
        (DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text()
    )
    known = {(source["type"], source["uid"]) for source in sources["datasources"]}
    targets = [target for panel in board()["panels"] for target in panel["targets"]]
    assert {(t["datasource"]["type"], t["datasource"]["uid"]) for t in targets} == known
    queries = [target["expr"] for target in targets]
    queries += [found["expr"] for found in board()["annotations"]["list"]]
    plain = [q.replace("$__rate_interval", "1m").replace("$feed", ".*") for q in queries]
    rules = [{"record": f"x:{i}", "expr": query} for i, query in enumerate(plain)]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}))
    code, said = run(tool("promtool", "prometheus"), "check", "rules", str(path))
    assert code == 0, said
