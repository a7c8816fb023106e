"""What the page on HTTP prints runs as it is: both clients, and the web application."""

import io
import json
import os
import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from drifting import CHEAP, inverted
from system_tools import package, tool

package("starlette", "pip install 'online-svm[http]'")
package("uvicorn", "pip install 'online-svm[http]'")

from served_gateway import serving  # noqa: E402
from world import Worker, flags_of, wait_until  # noqa: E402

from workers.broker import embedded  # noqa: E402
from workers.broker.store import Store  # noqa: E402

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
LEARNED = 300


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


SECTIONS = """
[feed.fraud]
classes = "fraud,honest"
horizon = "1000"
[feed.web]
classes = "a,b"
horizon = "60"
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    """The gateway of two feeds of one worker: `fraud` has named features, `web` an array."""
    config = tmp_path_factory.mktemp("page") / "worker.toml"
    config.write_text(SECTIONS)
    settings = {name: value for name, value in CHEAP.items() if name != "classes"}
    X, labels = inverted(LEARNED, LEARNED, LEARNED)
    with ExitStack() as opened:
        url = opened.enter_context(embedded.temporary()).url
        command = ("worker", "fraud", "web", "--redis", url, "--config", config)
        opened.enter_context(Worker(*command, *flags_of(settings)))
        client = opened.enter_context(serving(url, "fraud", "web"))
        for feed in ("fraud", "web"):
            store = opened.enter_context(Store(url, feed))
            wait_until(lambda store=store: store.state() is not None)
        sent = [
            {"x": x, "y": y, "id": f"w{i}"}
            for i, (x, y) in enumerate(zip(X.tolist(), labels, strict=True))
        ]
        assert client.post("/feeds/web/examples?timeout=60", sent).status == 200
        yield client


def address(client):
    return f"http://127.0.0.1:{client.port}"


def test_the_client_for_curl_asks_and_labels(gateway):
    tool("curl", "curl")
    text = blocks("sh")[1]
    assert len(text.splitlines()) < 10
    assert text.count("--max-time") == text.count("curl ")
    ended = subprocess.run(
        ["bash", "-ec", text], env={**os.environ, "GATEWAY": address(gateway)},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    decoder = json.JSONDecoder()
    answer, end = decoder.raw_decode(ended.stdout)
    done, _ = decoder.raw_decode(ended.stdout[end:])
    assert (answer["status"], answer["id"]) == ("warming", "tx-1")
    assert (done["status"], done["example"], done["done"]) == ("label", "tx-1", "accepted")


def test_the_client_for_python_asks_and_labels(gateway):
    text = blocks("python")[0]
    assert len([line for line in text.splitlines() if line]) < 10
    assert "timeout=" in text
    names = {"gateway": address(gateway)}
    exec(text, names)  # our own page
    assert (names["answer"]["status"], names["answer"]["id"]) == ("warming", "tx-2")
    assert (names["done"]["status"], names["done"]["label"]) == ("label", "fraud")


def test_the_web_application_asks_labels_and_shows_drift(gateway):
    text = blocks("python")[1]
    assert len([line for line in text.splitlines() if line]) < 20
    names = {"gateway": address(gateway)}
    exec(text, names)  # our own page

    def send(form=""):
        environ = {"CONTENT_LENGTH": str(len(form)), "wsgi.input": io.BytesIO(form.encode())}
        return names["application"](environ, lambda *_: None)[0].decode()

    assert "<p>Drift: none<" in send()
    asked = send("x=[0.5,1,-1]")
    assert "&quot;status&quot;: &quot;ok&quot;" in asked
    (given,) = re.findall(r"&quot;id&quot;: &quot;([0-9a-f]{32})&quot;", asked)
    assert "&quot;done&quot;: &quot;accepted&quot;" in send(f"id={given}&y=a")
    X, labels = inverted(2000, 0, 2000, seed=1)
    for first in range(0, 2000, 100):
        part = slice(first, first + 100)
        sent = [
            {"x": x, "y": y, "id": f"d{first}-{i}"}
            for i, (x, y) in enumerate(zip(X[part].tolist(), labels[part], strict=True))
        ]
        assert gateway.post("/feeds/web/examples?timeout=60", sent).status == 200
        shown = send()
        if "<p>Drift: none<" not in shown:
            break
    assert re.search("<p>Drift: (calibration|exchangeability)", shown)
