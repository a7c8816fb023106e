"""The top level of the repository: few entries, each for a reader, and facts that agree."""

import subprocess
import tomllib
from pathlib import Path

import yaml

import online_svm

ROOT = Path(__file__).parents[2]
ENTRIES = {
    "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md",
    "SECURITY.md", "deploy", "docs", "online_svm", "pyproject.toml", "scripts", "tests", "workers",
}  # fmt: skip


def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))


def test_the_top_level_has_these_entries_and_hidden_files_alone():
    listed = ["git", "-C", str(ROOT), "ls-files", "-z"]
    tracked = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    names = {path.partition("/")[0] for path in tracked.split("\0") if path}
    assert {name for name in names if not name.startswith(".")} == ENTRIES


def test_the_citation_has_what_version_1_2_of_its_format_requires():
    found = citation()
    assert found["cff-version"] == "1.2.0"
    assert found["message"]
    assert found["title"]
    assert found["authors"]
    assert all(author["name"] for author in found["authors"])
    assert set(found) <= {
        "cff-version", "message", "type", "title", "abstract", "authors", "version", "license",
        "keywords",
    }  # fmt: skip


def test_the_citation_agrees_with_the_package_and_its_licence():
    found = citation()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert found["title"] == project["name"]
    assert found["version"] == online_svm.__version__
    assert found["license"] == project["license"]
    assert found["keywords"] == project["keywords"]
    assert found["abstract"].rstrip(".") == project["description"].rstrip(".")
    assert f"Copyright (c) 2026, {found['authors'][0]['name']}\n" in (ROOT / "LICENSE").read_text()
