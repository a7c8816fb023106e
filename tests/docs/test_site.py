"""The site is built without a warning, and Chromium shows it, wide and narrow, light and dark."""

import re
import shutil
import subprocess
import sys
import threading
import tomllib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import chromium, expecting, tab
from system_tools import package

from scripts.building.long_description import absolute

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT).with_suffix(".html").as_posix()
               for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])  # fmt: skip
BUILD = (sys.executable, "-m", "sphinx", "-q", "--fail-on-warning", "-c", "docs")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ADDRESS = PROJECT["urls"]["Documentation"]
pytestmark = pytest.mark.slow  # Sphinx reads every page


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the site as `make docs` does; return its folder."""
    for name in ("sphinx", "myst_parser", "furo"):
        package(name, "pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("site")
    told = subprocess.run([*BUILD, ".", folder], cwd=ROOT, capture_output=True, text=True)
    assert (told.returncode, told.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def site(built):
    """Yield the address of the site on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=built)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    expecting()
    with chromium() as found:
        yield found


def test_a_dead_link_or_anchor_stops_the_build(tmp_path):
    package("furo", "pip install -e '.[dev]'")
    (tmp_path / "docs/notebooks").mkdir(parents=True)
    for name in ("docs/conf.py", "pyproject.toml", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "docs/_static", tmp_path / "docs/_static")
    page = "# A\n\n[no page](docs/b.md), [no anchor](#b), [one](#a)\n"
    (tmp_path / "README.md").write_text(page)
    build = [*BUILD, ".", tmp_path / "site"]
    told = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 1
    assert "'docs/b.md'" in told.stderr
    assert "'b'" in told.stderr
    assert "'a'" not in told.stderr


def test_what_readme_and_llms_txt_link_to_is_in_the_site(built):
    listed = (built / "llms.txt").read_text("utf-8")
    named = absolute((ROOT / "README.md").read_text("utf-8"), ADDRESS) + listed
    paths = set(re.findall(rf"\({re.escape(ADDRESS)}/([^)#]+)", named))
    assert [path for path in sorted(paths) if not (built / path).is_file()] == []
    markdown = {path.removesuffix(".html") + ".md" for path in PAGES}
    assert markdown <= {path for path in paths if path in listed}


@pytest.mark.parametrize("size", ["narrow", "desktop"])
def test_no_page_is_wider_than_the_screen(site, browser, size):
    with tab(browser, size=size) as page:
        wide = []
        for name in PAGES:
            page.goto(f"{site}/{name}")
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wide.append(name)
    assert wide == []


@pytest.mark.parametrize("size", ["narrow", "desktop"])
def test_the_search_finds_a_word_and_leads_to_its_page(site, browser, size):
    expect = expecting()
    with tab(browser, f"{site}/search.html?q=taxonomy", size) as page:
        found = page.locator("#search-results li a").first
        expect(found).to_be_visible()
        found.click()
        expect(page.locator("article")).to_contain_text("taxonom")


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_the_page_has_the_colours_that_the_reader_prefers(site, browser, scheme, dark):
    with tab(browser, f"{site}/index.html", scheme=scheme) as page:
        style = "getComputedStyle(document.body)"
        behind, text = (
            sum(map(int, re.findall(r"\d+", page.evaluate(f"{style}.{name}"))[:3]))
            for name in ("backgroundColor", "color")
        )
        assert (behind < text) == dark
