"""Every snippet of docs/how-to/clients.md runs, and gets what the page says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from system_tools import package, tool

package("starlette", "pip install 'online-svm[http]'")

from served_gateway import serving  # noqa: E402
from world import SETTINGS, Worker, flags_of, wait_until  # noqa: E402

from scripts import make_http_docs  # noqa: E402
from workers.broker import embedded  # noqa: E402
from workers.broker.store import Store  # noqa: E402

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "clients.md").read_text("utf-8")
NEW = "number,amount,country\nA1,39.5,de\nA2,,fr\nA3,7,\n"


def block(language, having=""):
    """Return the only block of a language that has a text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    (found,) = (text for text in blocks if having in text)
    return found


def example(i):
    amount = float(i % 9) + 100 * (i % 2)
    return {"id": f"w{i}", "x": {"amount": amount, "country": "df"[i % 2] + "e"},
            "y": ("honest", "fraud")[i % 2]}  # fmt: skip


@pytest.fixture(scope="module")
def feed():
    """A gateway of the feed `fraud`, whose worker has the options of the page."""
    worker, _ = block("sh", "online-svm worker").splitlines()
    others = {name: value for name, value in SETTINGS.items() if name != "classes"}
    with (
        embedded.temporary() as server,
        Worker(*worker.split()[1:], *flags_of(others), "--redis", server.url),
        serving(server.url, "fraud") as client,
        Store(server.url, "fraud") as store,
    ):
        wait_until(lambda: store.state() is not None)
        sent = [example(i) for i in range(120)]
        assert client.post("/feeds/fraud/examples?timeout=60", sent).status == 200
        client.url, client.store = server.url, store
        yield client


@pytest.fixture
def typed(feed, tmp_path, monkeypatch):
    """Put the port of this run in the place of the page's; run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda text: text.replace("127.0.0.1:8765", f"127.0.0.1:{feed.port}")


def said(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_curl_asks_and_labels(typed):
    tool("curl", "curl")
    asked, labelled = re.findall(
        r"\{.*?\}(?=\{|$)", said("bash", "-ec", typed(block("sh", "curl")))
    )
    assert json.loads(asked)["status"] == "ok"
    assert json.loads(asked)["traceparent"].startswith("00-4bf92f")
    assert json.loads(labelled)["done"] == "accepted"


def test_httpx_asks_with_a_key(typed, capsys):
    package("httpx", "pip install httpx")
    code = compile(typed(block("python", "httpx.Client")), "page", "exec")
    exec(code, {})  # our own page
    first = capsys.readouterr().out
    exec(code, {})
    assert first == capsys.readouterr().out, "the key gives the first answer again"
    assert re.fullmatch(r"ok (fraud|honest) [\d.]+\n", first)
    refused = block("python", "httpx.Client")
    refused = refused.replace("json=sent", 'content=b"{"')
    wrong = typed(
        refused.replace('"Idempotency-Key": "tx-2"', '"Content-Type": "application/json"')
    )
    with pytest.raises(SystemExit, match="not_json: the body is not JSON"):
        exec(compile(wrong, "page", "exec"), {})


def test_fetch_asks_for_a_list(typed):
    node = tool("node", "nodejs")
    run = (node, "--input-type=module")
    assert re.fullmatch(r"ok (fraud|honest) [\d.]+\n", said(*run, text=typed(block("js"))))
    wrong = typed(block("js").replace("x: {", "z: {"))
    failed = subprocess.run(run, input=wrong, capture_output=True, text=True, timeout=60)
    assert "field_invalid: [0].'z': unknown" in failed.stderr


def test_pandas_asks_for_a_table(typed):
    package("httpx", "pip install httpx")
    Path("new.csv").write_text(NEW)
    names = {}
    exec(typed(block("python", "pd.read_csv")), names)
    table = names["table"]
    assert table.index.tolist() == ["A1", "A2", "A3"]
    assert set(table["status"]) == {"ok"}
    assert table["fraud"].between(0, 1).all()
    assert table["fraud"].nunique() > 1


def test_polars_and_duckdb_read_the_exported_answers(feed, typed, run_command):
    package("pyarrow", "pip install 'online-svm[archive]'")
    package("polars", "pip install polars")
    package("duckdb", "pip install duckdb")
    command = block("sh", "export").split()[1:]
    code, _, err = run_command(*command, "--redis", feed.url)
    assert code == 0, err
    names = {}
    exec(block("python", "polars"), names)
    exec(block("python", "duckdb"), names)
    rows, table = names["rows"].fetchall(), names["by_label"].rows()
    assert sum(count for _, count, _ in rows) == feed.store.length(feed.store.keys.out)
    assert [(label, count) for label, count, _ in table] != []
    by_label = {label: (count, pytest.approx(mean)) for label, count, mean in rows}
    assert {label: (count, mean) for label, count, mean in table} == by_label


def test_what_kafka_connect_adds_is_answered(feed):
    """The sink adds the fields of a record as text, under the key `redis.keyspace`."""
    lines = dict(line.split("=", 1) for line in block("properties").splitlines())
    assert lines["redis.keyspace"] == feed.store.keys.input
    record = json.loads(block("json", "tx-9"))
    fields = [text for name, value in record.items() for text in (name, str(value))]
    entry = feed.store.call("XADD", lines["redis.keyspace"], "*", *fields).decode()
    answer = feed.get(f"/feeds/fraud/answers/{entry}?timeout=30").json
    assert (answer["status"], answer["id"]) == ("ok", "tx-9")
    again = feed.store.call("XADD", lines["redis.keyspace"], "*", *fields).decode()
    assert feed.get(f"/feeds/fraud/answers/{again}?timeout=30").json["status"] == "ok"


class Delivered(Exception):
    """All answers were delivered, so that the endless loop of the page ends."""


class Producer:
    """Kafka, as the bridge uses it: what is produced is delivered, or refused, by `flush`."""

    refuses, taken = False, []

    def __init__(self, settings):
        assert settings["bootstrap.servers"]
        self._sent = []

    def produce(self, _topic, value, key, on_delivery):
        self._sent.append((key, value, on_delivery))

    def flush(self, _seconds):
        if not self._sent:
            if len(self.taken) >= 120:
                raise Delivered
            return 0
        for key, value, on_delivery in self._sent:
            if not self.refuses:
                self.taken.append((key, value))
            on_delivery("no broker" if self.refuses else None, None)
        self._sent = []
        return 0


def test_the_bridge_sends_each_answer_until_kafka_has_it(feed, monkeypatch):
    module = type(sys)("confluent_kafka")
    module.Producer = Producer
    monkeypatch.setitem(sys.modules, "confluent_kafka", module)
    bridge = block("python", "confluent_kafka").replace("redis://localhost:6379/0", feed.url)
    bridge = compile(bridge.replace("5000", "50"), "page", "exec")
    monkeypatch.setattr(Producer, "refuses", True)
    with pytest.raises(SystemExit, match="no broker"):
        exec(bridge, {})
    monkeypatch.setattr(Producer, "refuses", False)
    with pytest.raises(Delivered):
        exec(bridge, {})
    keys = [key for key, _ in Producer.taken]
    assert keys[:120] == [f"w{i}" for i in range(120)]
    answers = feed.store.call("XRANGE", feed.store.keys.out, "-", "+")
    assert [value for _, value in Producer.taken] == [fields[1] for _, fields in answers]
    assert feed.store.call("XPENDING", feed.store.keys.out, "downstream")[0] == 0


def test_a_node_of_n8n_asks(typed, feed):
    """The body is the expression of the node, with `$json` for the item."""
    node = tool("node", "nodejs")
    (found,) = json.loads(block("json", "n8n"))["nodes"]
    sent = found["parameters"]
    assert typed(sent["url"]) == f"http://127.0.0.1:{feed.port}/feeds/fraud/examples"
    expression = re.fullmatch(r"=\{\{ (.*) \}\}", sent["jsonBody"])[1]
    item = json.dumps({"id": "n8n-1", "amount": 5, "country": "de", "other": 1})
    body = said(node, "-e", f"const $json = {item}; console.log({expression})")
    reply = feed.ask(sent["method"], "/feeds/fraud/examples", body.encode())
    assert (reply.status, reply.json["id"]) == (200, "n8n-1")


def test_the_reference_is_up_to_date():
    assert make_http_docs.main(["--check"]) == 0
