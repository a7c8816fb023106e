"""The long description of a release is rendered, and each of its links leads to the documents."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from re import findall, search

import pytest
from emulated_machine import installed
from readme_renderer import markdown

from scripts.building.long_description import absolute

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ADDRESS = PROJECT["urls"]["Documentation"]


def targets(text):
    """Return where links and pictures of a rendered description lead."""
    rendered = markdown.render(text)
    assert "<h2 " in rendered
    return findall(r'(?:href|src)="([^"]+)"', rendered)


def test_no_link_of_the_rendered_description_is_relative():
    relative = targets(README)
    found = targets(absolute(README, ADDRESS))
    assert len(found) == len(relative) > 30
    assert [target for target in found if not target.startswith(("https://", "#"))] == []
    assert any(target.startswith(f"{ADDRESS}/_images/") for target in found)


def test_code_is_left_as_it_is():
    code = findall(r"```.*?```", README, 16)
    assert findall(r"```.*?```", absolute(README, ADDRESS), 16) == code != []


@pytest.mark.slow
@pytest.mark.timeout(300)  # pip fetches what the build needs
def test_the_metadata_of_a_build_has_that_description(tmp_path):
    installed(tmp_path / "probe", "--no-deps", "typing-extensions")  # skips without an index
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps"]
    command += ["--ignore-installed", "--report", tmp_path / "report", ROOT]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=280)
    found = json.loads((tmp_path / "report").read_text())["install"][0]["metadata"]
    assert found["description"].strip() == absolute(README, ADDRESS).strip()
    assert found["keywords"] == PROJECT["keywords"]
    assert {url.partition(", ")[2] for url in found["project_url"]} == {*PROJECT["urls"].values()}


def test_the_metadata_names_each_python_that_is_supported():
    named = [search(r"Python :: 3\.(\d+)$", text) for text in PROJECT["classifiers"]]
    assert [int(found[1]) for found in named if found] == [11, 12, 13, 14]
    assert PROJECT["requires-python"] == ">=3.11"
