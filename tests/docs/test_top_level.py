"""The top level of the repository, its citation, and the page of the settings."""

import subprocess
import tomllib
from pathlib import Path

import yaml

import online_svm
from scripts import make_settings_docs
from workers.config.settings import WorkerSettings

ROOT = Path(__file__).parents[2]
ENTRIES = {
    "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "Makefile",
    "README.md", "SECURITY.md", "deploy", "docs", "online_svm", "pyproject.toml", "scripts",
    "tests", "workers",
}  # fmt: skip


def test_the_top_level_has_these_entries_and_hidden_files_alone():
    listed = ["git", "-C", str(ROOT), "ls-files", "-z"]
    tracked = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    names = {path.partition("/")[0] for path in tracked.split("\0") if path}
    assert {name for name in names if not name.startswith(".")} == ENTRIES


def test_the_citation_has_what_its_format_requires_and_agrees_with_the_package():
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (found["cff-version"], bool(found["message"])) == ("1.2.0", True)
    assert set(found) <= {
        "cff-version", "message", "type", "title", "abstract", "authors", "version", "license",
        "keywords",
    }  # fmt: skip
    assert found["version"] == online_svm.__version__
    assert [found[name] for name in ("title", "license", "keywords")] == [
        project[name] for name in ("name", "license", "keywords")
    ]
    assert found["abstract"].rstrip(".") == project["description"].rstrip(".")
    first, *_ = [author["name"] for author in found["authors"]]
    assert f"Copyright (c) 2026, {first}\n" in (ROOT / "LICENSE").read_text()


def test_the_page_of_the_settings_is_up_to_date_and_has_each_once():
    assert make_settings_docs.main(["--check"]) == 0
    lines = make_settings_docs.render().splitlines()
    rows = [line.split("`")[1] for line in lines if line.startswith("| `")]
    found = [name for name in rows if name in WorkerSettings.model_fields]
    assert sorted(found) == sorted(WorkerSettings.model_fields)
