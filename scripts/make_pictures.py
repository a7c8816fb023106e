"""Write the pictures of the live page: real workers, a real drift, Debian's Chromium.

python scripts/make_pictures.py        (or make pictures; a minute)

Three feeds run on an embedded Redis. One of them drifts: from example
2,000 on, half of the labels are drawn by lot. The pictures are taken while it goes on.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread

import numpy as np
import orjson

from workers.admin.notes import note
from workers.broker import embedded
from workers.broker.store import Store
from workers.errors import WorkerError
from workers.push.ingest import Pacing, PushRate, push, shuffled
from workers.push.sources import Reading, Row, rows
from workers.python_process import command, environment

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SEED = 0
BEFORE, AFTER = 2000, 2400
"""Examples of the drifting feed before the drift, and after it while the pictures are taken."""

RATE = 60.0
UNTIL_PICTURE = 14.0  # seconds of the drift before the first picture
PATIENCE = 900.0  # seconds


def main() -> None:
    """Run the feeds and take the pictures."""
    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("Chromium is missing: apt-get install chromium")
    with ExitStack() as stack:
        url = stack.enter_context(embedded.temporary()).url
        data = {
            "phishing": shuffled(rows("Phishing", Reading()), SEED),
            "segments": shuffled(rows("ImageSegments", Reading()), SEED),
            "payments": list(drifting(BEFORE + AFTER)),
        }
        for feed, examples in data.items():
            classes = ",".join(sorted({row.y for row in examples if row.y is not None}))
            options = ("--classes", classes, "--metrics-every", "25", "--metrics-window", "300")
            stack.enter_context(running("worker", feed, "--redis", url, *options, "--quiet"))
        for feed in ("phishing", "segments"):
            push(data[feed], url, feed)
        push(data["payments"][:BEFORE], url, "payments")
        for feed in data:
            wait_for(url, feed, BEFORE if feed == "payments" else len(data[feed]))
        page = stack.enter_context(running("dashboard", "--redis", url, "--port", "0", "--json"))
        assert page.stdout is not None
        address = orjson.loads(page.stdout.readline())["url"]
        with Store(url, "payments") as store:
            note(store, "half of the labels by lot", BEFORE)
        rest = data["payments"][BEFORE:]
        Thread(target=push_slowly, args=(rest, url, "payments"), daemon=True).start()
        photograph(browser, address)


def push_slowly(examples: list[Row], url: str, feed: str) -> None:
    """Push examples until the server ends, which it does when the pictures are taken."""
    pace = PushRate(RATE)
    with suppress(WorkerError):
        push(examples, url, feed, pacing=Pacing(pace.chunk, pace))


def drifting(count: int) -> Iterator[Row]:
    """Yield examples of two classes; after `BEFORE` half of the labels are drawn by lot."""
    rng = np.random.default_rng(SEED)
    for i in range(count):
        is_fraud = rng.random() < 0.4
        x = rng.normal(size=4) + (0.8 if is_fraud else -0.8)
        if i >= BEFORE and rng.random() < 0.5:
            is_fraud = rng.random() < 0.4
        values = {f"f{j}": float(value) for j, value in enumerate(x)}
        yield Row(values, "fraud" if is_fraud else "good", f"tx-{i}")


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of online-svm; stop it at the end."""
    process = subprocess.Popen(
        command("-m", "workers.cli", *arguments), env=environment(), stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


def wait_for(url: str, feed: str, seq: int) -> None:
    """Return when a feed has answered so many entries."""
    deadline = time.monotonic() + PATIENCE
    with Store(url, feed) as store:
        while (state := store.state()) is None or state.position.seq < seq:
            if time.monotonic() > deadline:
                sys.exit(f"feed {feed} stands still")
            time.sleep(0.2)


def photograph(browser: str, address: str) -> None:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright

    shots = (("page", "?feed=payments", (1280, 1180)), ("feeds", "", (1280, 290)))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for name, query, (width, height) in shots:
            page = chromium.new_page(viewport={"width": width, "height": height})
            page.set_default_timeout(1000 * PATIENCE)  # a busy machine draws slowly
            page.goto(address + query)
            page.locator("canvas" if query else "table").first.wait_for()
            page.wait_for_timeout(1000 * (UNTIL_PICTURE if query else 3))
            page.screenshot(path=IMAGES / f"{name}.png")
            page.close()
        chromium.close()


if __name__ == "__main__":
    main()
