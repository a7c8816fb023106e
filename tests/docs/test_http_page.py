"""The web application that the guide prints asks, labels and shows drift."""

import io
import re
from contextlib import ExitStack
from pathlib import Path

import pytest
from drifting import CHEAP, inverted
from system_tools import package

package("starlette", "pip install 'online-svm[http]'")
package("uvicorn", "pip install 'online-svm[http]'")

from served_gateway import serving  # noqa: E402
from world import Worker, flags_of, wait_until  # noqa: E402

from workers.broker import embedded  # noqa: E402
from workers.broker.store import Store  # noqa: E402

PAGE = (Path(__file__).parents[2] / "docs" / "guide.md").read_text(encoding="utf-8")
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


def test_the_web_application_asks_labels_and_shows_drift(gateway):
    (text,) = (found for found in blocks("python") if "def application" in found)
    assert len([line for line in text.splitlines() if line]) < 20
    names = {}
    exec(text.replace("http://127.0.0.1:8765", address(gateway)), names)  # our own page

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
