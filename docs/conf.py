"""The site, built by `make docs`: Sphinx with MyST, which reads the Markdown pages as they are.

Why Sphinx: it fails on a dead link or anchor (`--fail-on-warning`), its search needs no server, and
it takes the Python reference from the docstrings. Material for MkDocs ended its maintenance in
November 2026, and its successor Zensical has no stable release yet.

The source folder is the root of the repository, so that links between README.md, docs/ and deploy/
are the same here and in the repository.
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

NAVIGATION = {
    "Start here": ["tutorial", "concepts", "choosing-settings", "operate"],
    "How to": sorted(f"how-to/{path.stem}" for path in (DOCS / "how-to").glob("*.md")),
    "Explained": ["monitoring", "guarantees", "where-it-does-not-help", "scale",
                  "explanation/architecture", "explanation/extending"],
    "Look up": ["settings", "commands", "features", "errors", "messages", "http", "measured",
                "river-benchmark", "own-score-benchmark", "python", "glossary"],
    "The project": ["../CHANGELOG", "../CONTRIBUTING", "../SECURITY", "../deploy/README",
                    "../deploy/redis/README", "../deploy/licences"],
}  # fmt: skip
NAVIGATION["More"] = sorted(
    {path.stem for path in DOCS.glob("*.md")}.difference(*NAVIGATION.values())
)
"""Headings of the navigation, and the pages below each, by their paths from docs/."""

INHERITED = "set_fit_request, set_partial_fit_request, set_predict_proba_request, set_score_request"
"""Methods that scikit-learn makes, whose docstrings refer to its own pages."""

project = "online-svm"
author = "the online-svm authors"
copyright = "2026, the online-svm authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
source_suffix = {".md": "markdown"}
include_patterns = ["*.md", "docs/*.md", "docs/*/*.md", "deploy/*.md", "deploy/*/*.md"]
exclude_patterns = [".*", "build", "tests", "online_svm", "workers", "scripts"]
html_theme = "furo"
html_title = "online-svm"
html_favicon = "_static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
highlight_language = "none"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_typehints = "none"  # the docstrings have types, with shapes
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
    if docname == "docs/python":
        source[0] += f"\n```{{eval-rst}}\n{_directives()}```\n"


def _directives() -> str:
    import online_svm

    names = ((name, getattr(online_svm, name)) for name in sorted(online_svm.__all__))
    return "".join(
        f".. auto{'class' if isinstance(member, type) else 'function'}:: online_svm.{name}\n"
        + f"   :members:\n   :exclude-members: {INHERITED}\n" * isinstance(member, type)
        for name, member in names
        if callable(member)
    )


def _entries(pages: list[str]) -> str:
    there = (page for page in pages if (DOCS / f"{page}.md").exists())
    return "\n".join(f"/docs/{page}".replace("/docs/../", "/") for page in there)


def _escape(_app: Any, _what: str, _name: str, _it: Any, _options: Any, lines: list[str]) -> None:
    """Leave `a_` and `|w|` in sentences as they are: in reStructuredText they are references."""
    lines[:] = [
        line
        if ">>>" in line
        else re.sub(r"(?<!\\)(\w)_(?![\w`])", r"\1\\_", line).replace("|", "\\|")
        for line in lines
    ]


def _write_index(app: Any, error: Exception | None) -> None:
    """Let the folder of the site open at its first page."""
    if error is None:
        shutil.copy(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app: Any) -> None:
    """Register the hooks above."""
    app.connect("autodoc-process-docstring", _escape, priority=600)  # after napoleon
    app.connect("source-read", _append_navigation)
    app.connect("build-finished", _write_index)
