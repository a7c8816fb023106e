"""The site, built by `make docs`: Sphinx with MyST, which reads the Markdown pages as they are.

Why Sphinx: it fails on a dead link or anchor (`--fail-on-warning`), its search needs no server, and
it builds from Markdown as it is. Material for MkDocs ended its maintenance in November 2026, and
its successor Zensical has no stable release yet.

Beside each page stands its Markdown, and `llms.txt` lists them for programs that read.

The source folder is the root of the repository, so that links between README.md, docs/ and deploy/
are the same here and in the repository.
"""

import shutil
import tomllib
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ADDRESS = _PROJECT["urls"]["Documentation"].rstrip("/")

NAVIGATION = {
    "Start here": ["tutorial", "concepts", "choosing-settings", "operate"],
    "How to": sorted(f"how-to/{path.stem}" for path in (DOCS / "how-to").glob("*.md")),
    "Explained": ["monitoring", "guarantees", "where-it-does-not-help", "compared", "scale",
                  "explanation/monitors", "explanation/architecture", "explanation/extending"],
    "Look up": ["settings", "commands", "features", "errors", "messages", "http", "measured",
                "river-benchmark", "own-score-benchmark", "python", "glossary"],
    "The project": ["../CHANGELOG", "../CONTRIBUTING", "../SECURITY", "../deploy/README",
                    "../deploy/redis/README", "../deploy/licences"],
}  # fmt: skip
NAVIGATION["More"] = sorted(
    {path.stem for path in DOCS.glob("*.md")}.difference(*NAVIGATION.values())
)
"""Headings of the navigation, and the pages below each, by their paths from docs/."""

project = "online-svm"
author = "the online-svm authors"
copyright = "2026, the online-svm authors"
extensions = ["myst_parser"]
root_doc = "README"
source_suffix = {".md": "markdown"}
include_patterns = ["*.md", "docs/*.md", "docs/*/*.md", "deploy/*.md", "deploy/*/*.md"]
exclude_patterns = [".*", "build", "tests", "online_svm", "workers", "scripts"]
html_theme = "furo"
html_title = "online-svm"
html_favicon = "_static/icon.svg"
html_baseurl = f"{ADDRESS}/"
html_static_path = ["_static"]
html_extra_path = ["../CITATION.cff"]  # README links to it
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
highlight_language = "none"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
# Anchors of headings are those of the repository's own view.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]


def _append_navigation(_app: Any, docname: str, source: list[str]) -> None:
    """Give the first page its table of contents, which the repository's view does not need."""
    if docname == root_doc:
        source[0] += "".join(
            f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{_entries(pages)}\n```\n"
            for heading, pages in NAVIGATION.items()
            if pages
        )


def _entries(pages: list[str]) -> str:
    there = (page for page in pages if (DOCS / f"{page}.md").exists())
    return "\n".join(f"/docs/{page}".replace("/docs/../", "/") for page in there)


def _write_files(app: Any, error: Exception | None) -> None:
    """Write the first page as the folder's index, the Markdown of each page, and llms.txt."""
    if error is None:
        built = Path(app.outdir)
        shutil.copy(built / f"{root_doc}.html", built / "index.html")
        pages = {name: Path(app.env.doc2path(name)) for name in sorted(app.env.found_docs)}
        for name, source in pages.items():
            shutil.copy(source, built / f"{name}.md")
        shutil.copytree(DOCS / "notebooks", built / "docs/notebooks", dirs_exist_ok=True)
        (built / "llms.txt").write_text(_listed(pages), "utf-8")


def _listed(pages: dict[str, Path]) -> str:
    """Return the list of pages in the form of llmstxt.org: the title and the address of each."""
    parts = [f"# {project}\n\n> {_PROJECT['description']}.\n\n{_line(root_doc, pages)}"]
    for heading, names in NAVIGATION.items():
        paths = [entry.removeprefix("/") for entry in _entries(names).splitlines()]
        if paths:
            parts.append(f"## {heading}\n\n{''.join(_line(path, pages) for path in paths)}")
    return "\n".join(parts)


def _line(name: str, pages: dict[str, Path]) -> str:
    title = pages[name].read_text("utf-8").partition("\n")[0].removeprefix("# ")
    return f"- [{title}]({ADDRESS}/{name}.md)\n"


def setup(app: Any) -> None:
    """Register the hooks above."""
    app.connect("source-read", _append_navigation)
    app.connect("build-finished", _write_files)
