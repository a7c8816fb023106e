"""TLS with verification, against a redis-server that speaks it: certificates made here."""

import socket
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from processes import Process, free_port
from redis_cluster import running_cluster
from system_tools import missing, redis_server, tool
from threaded_feed import lone_outcome
from world import World, rows, wait_until

from workers.broker.store import Store
from workers.config.redis_url import complete
from workers.errors import BadConfiguration


def openssl(directory, *arguments):
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)


def make_certificates(directory):
    """Make a CA, a certificate of localhost, one that has expired, and a CA of somebody else."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "other-ca"):
        # Python 3.13 refuses a CA without the extension.
        usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
        subject = ("-subj", f"/CN={name}", "-days", "2", *usage)
        openssl(directory, "req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem", *subject)  # fmt: skip  # noqa: E501  (one command)
    (directory / "names").write_text("subjectAltName=DNS:localhost\n")
    for name, days in (("server", "2"), ("expired", "-1")):
        openssl(directory, "req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=x")  # fmt: skip  # noqa: E501  (one command)
        signed_by = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        openssl(directory, "x509", "-req", "-in", f"{name}.csr", *signed_by, "-days", days,
                "-extfile", "names", "-out", f"{name}.pem")  # fmt: skip


def server_with_tls():
    """Return the redis-server to use, or say why there is none."""
    found = redis_server()
    tool("openssl", "openssl")
    # Without support for it this option is one the server does not know.
    tried = subprocess.run(
        [found, "--tls-port", "0", "--port", "-1"], capture_output=True, text=True
    )
    if "tls-port" in tried.stdout + tried.stderr:
        missing(f"needs a Redis with TLS: {found} is built without")
    return found


ACL = Path(__file__).parents[3] / "deploy" / "redis" / "users.acl"
PASSWORD = "pw of/the@test:é"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    server_with_tls()
    directory = tmp_path_factory.mktemp("tls")
    make_certificates(directory)
    hashed = sha256(PASSWORD.encode()).hexdigest()
    rules = ACL.read_text().replace("off resetpass", f"on resetpass #{hashed}")
    (directory / "users.acl").write_text(
        rules.replace(f"default on resetpass #{hashed}", "default off")
    )
    (directory / "password").write_text(PASSWORD + "\n")
    return directory


@pytest.fixture(scope="module")
def start(certificates):
    """Start servers by the name of their certificate; return their ports."""
    processes = []

    def started(name):
        port = free_port()
        options = {
            "port": 0, "tls-port": port, "bind": "127.0.0.1", "save": "", "dir": certificates,
            "tls-cert-file": f"{name}.pem", "tls-key-file": f"{name}.key",
            "tls-ca-cert-file": "ca.pem", "tls-auth-clients": "no", "aclfile": "users.acl",
        }  # fmt: skip
        arguments = [str(part) for k, v in options.items() for part in (f"--{k}", v)]
        processes.append(
            Process([server_with_tls(), *arguments], stdout=subprocess.DEVNULL, cwd=certificates)
        )
        with socket.socket() as probe:
            wait_until(lambda: probe.connect_ex(("127.0.0.1", port)) == 0)
        return port

    yield started
    for process in processes:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def port(start):
    return start("server")


@pytest.fixture
def run(run_command):
    def invoke(*arguments):
        code, *told = run_command(*arguments)
        assert PASSWORD not in "".join(told)
        return code, "".join(told)

    return invoke


def test_a_verified_connection_works_with_the_password_of_a_file(
    certificates, port, run, monkeypatch
):
    files = {
        "redis_password_file": certificates / "password",
        "redis_ca_file": certificates / "ca.pem",
    }
    for name, path in files.items():
        monkeypatch.setenv(f"ONLINE_SVM_{name.upper()}", str(path))
    url = f"rediss://osvm-producer@localhost:{port}/0"
    code, said = run("push", "f", "Phishing", "--limit", "20", "--redis", url)
    assert (code, "20 rows pushed" in said) == (0, True), said
    code, said = run("check", "f", "--redis", url.replace("producer", "worker"))
    assert (code, "a worker may begin" in said) == (0, True), said
    with Store(complete(url.replace("producer", "reader"), files), "f") as store:
        assert store.length(store.keys.input) == 20


def test_the_settings_file_names_the_files_for_every_command(certificates, port, run, tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f'[worker]\nredis = "rediss://osvm-reader@localhost:{port}"\n'
        f'redis_password_file = "{certificates}/password"\n'
        f'redis_ca_file = "{certificates}/ca.pem"\n'
    )
    code, said = run("status", "--config", str(settings))
    assert code == 0, said


UNVERIFIED = [
    ("other-ca.pem", "localhost", "certificate verify failed"),
    ("ca.pem", "127.0.0.1", "certificate is not valid for '127.0.0.1'"),
    (None, "localhost", "certificate verify failed"),
]


@pytest.mark.parametrize(("ca", "host", "complaint"), UNVERIFIED)
def test_a_server_that_nobody_vouches_for_exits_2(certificates, port, run, ca, host, complaint):
    url = f"rediss://osvm-worker@{host}:{port}"
    options = [] if ca is None else ["--redis-ca-file", str(certificates / ca)]
    password = ["--redis-password-file", str(certificates / "password")]
    code, said = run("worker", "f", "--redis", url, *password, *options)
    assert code == 2
    assert complaint in said
    assert "check the certificate" in said


def test_an_expired_certificate_exits_2(certificates, start, run):
    url = f"rediss://osvm-worker@localhost:{start('expired')}"
    code, said = run("check", "f", "--redis", url, "--redis-ca-file", str(certificates / "ca.pem"))
    assert (code, "expired" in said) == (2, True), said


def test_a_password_may_hold_any_character(certificates):
    url = complete("rediss://me@h:1/0?db=0", {"redis_password_file": certificates / "password"})
    assert url == "rediss://me:pw%20of%2Fthe%40test%3A%C3%A9@h:1/0?db=0"


@pytest.mark.parametrize(("url", "files", "complaint"), [
    (None, {"redis_ca_file": "ca.pem"}, "give the URL"),
    ("redis://h", {"redis_ca_file": "ca.pem"}, "must begin with rediss://"),
    ("rediss://h", {"redis_ca_file": "none.pem"}, "none.pem: No such file"),
    ("redis://u:secret@h", {"redis_password_file": "password"}, "holds a password already"),
    ("redis://u@h", {"redis_password_file": "none"}, "none: No such file"),
    ("redis://u@h", {"redis_password_file": "empty"}, "one line is wanted"),
    ("redis://u@h", {"redis_password_file": "latin"}, "not UTF-8"),
    ("redis://u@h", {"redis_sentinel_password_file": "password"}, r"redis\+sentinel://"),
    ("redis+sentinel://h/s", {"redis_sentinel_password_file": "empty"}, "one line is wanted"),
    ("redis+sentinel://h/s?sentinel_password=secret",
     {"redis_sentinel_password_file": "password"}, "holds that password already"),
])  # fmt: skip
def test_files_that_cannot_help_are_refused_by_name(tmp_path, url, files, complaint):
    contents = {"password": b"pw", "empty": b"\n", "latin": b"\xff", "ca.pem": b""}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadConfiguration, match=complaint) as refused:
        complete(url, {setting: tmp_path / name for setting, name in files.items()})
    assert "secret" not in str(refused.value)


@pytest.mark.scale
def test_every_node_of_a_cluster_is_verified(tmp_path):
    server_with_tls()
    make_certificates(tmp_path)
    with running_cluster(tmp_path, replicas=0, tls=tmp_path) as cluster:
        plain = f"rediss+cluster://localhost:{cluster.nodes[0].port}"
        url = complete(plain, {"redis_ca_file": tmp_path / "ca.pem"})
        for place in range(3):
            with World(url, cluster.feed_on(place)) as world:
                world.push(60)
                world.answer()
                assert world.outcome() == lone_outcome(60, rows()[:60])
        for ca, host, complaint in UNVERIFIED[:2]:
            other = complete(plain.replace("localhost", host), {"redis_ca_file": tmp_path / ca})
            with Store(other, "f") as store, pytest.raises(BadConfiguration, match=complaint):
                store.state()
