"""The web application of docs/how-to/clients.md asks, labels and shows drift."""

import io
import re
from pathlib import Path

import pytest
from drifting import CHEAP_FEED, inverted
from system_tools import package

package("starlette", "pip install 'online-svm[http]'")
package("uvicorn", "pip install 'online-svm[http]'")

from served_gateway import serving  # noqa: E402
from world import Worker, flags_of, wait_until  # noqa: E402

from workers.broker.store import Store  # noqa: E402

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "clients.md").read_text(encoding="utf-8")
LEARNED = 300


def post(client, X, labels, name):
    rows = enumerate(zip(X.tolist(), labels, strict=True))
    sent = [{"x": x, "y": y, "id": f"{name}-{i}"} for i, (x, y) in rows]
    assert client.post("/feeds/web/examples?timeout=60", sent).status == 200


@pytest.fixture
def gateway(embedded_url):
    """The gateway of the feed `web`, which has a horizon."""
    flags = flags_of(CHEAP_FEED | {"classes": "a,b", "horizon": 60})
    with (
        Worker("worker", "web", "--redis", embedded_url, *flags),
        serving(embedded_url, "web") as client,
        Store(embedded_url, "web") as store,
    ):
        wait_until(lambda: store.state() is not None)
        post(client, *inverted(LEARNED, LEARNED, LEARNED), "w")
        yield client


def test_the_web_application_asks_labels_and_shows_drift(gateway):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (text,) = (found for found in blocks if "def application" in found)
    assert len([line for line in text.splitlines() if line]) < 20
    names = {}
    exec(text.replace(":8765", f":{gateway.port}"), names)  # our own page

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
        post(gateway, X[part], labels[part], f"d{first}")
        shown = send()
        if "<p>Drift: none<" not in shown:
            break
    assert re.search("<p>Drift: (calibration|exchangeability)", shown)
