"""The lock files cover all that is declared, name no index, and are what the audit reads."""

import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import audit, make_lock
from scripts.release import licences

extras = pytest.mark.parametrize("extra", make_lock.EXTRAS)
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def locked(extra):
    """Return what installing the file of an extra installs."""
    return make_lock.read("service") | make_lock.read(extra)


@extras
def test_every_version_is_exact_and_has_hashes_and_no_index_is_named(extra):
    text = (make_lock.TARGET / f"{extra}.txt").read_text()
    lines = [line for line in text.splitlines() if not line.startswith(("#", "-r service.txt"))]
    pins = [i for i, line in enumerate(lines) if "==" in line]
    assert all(re.fullmatch(r"[a-z0-9-]+==[A-Za-z0-9.+!]+ \\", lines[i]) for i in pins)
    assert all(HASH.fullmatch(lines[i + 1]) for i in pins)
    assert all(HASH.fullmatch(line) for i, line in enumerate(lines) if i not in pins)
    assert "://" not in text
    assert list(make_lock.read(extra)) == sorted(make_lock.read(extra))


@extras
def test_all_that_is_declared_is_locked_to_a_version_that_will_do(extra):
    for requirement in make_lock.declared(extra):
        version = locked(extra)[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version, prereleases=True)


def test_what_the_declared_packages_need_is_locked_as_well():
    needed = make_lock.locked([Requirement("bokeh"), Requirement("redis[hiredis]")])
    assert {"jinja2", "markupsafe", "tornado", "hiredis"} <= set(needed)
    assert set(needed) <= set(locked("service"))


def test_each_locked_package_has_an_allowed_licence(capsys):
    licences.check()
    assert capsys.readouterr().out.endswith("all allowed\n")


@pytest.mark.parametrize("expression", ["GPL-3.0-only", "MIT AND AGPL-3.0-only", "unknown", ""])
def test_a_licence_that_is_not_listed_is_refused(expression):
    assert not licences.is_allowed(expression)


@pytest.mark.parametrize(
    ("found", "code", "said"),
    [
        (None, 0, "NOT MADE: pip-audit or its service"),
        ([{"name": "a", "skip_reason": "no such package"}], 0, "NOT MADE: the service knows none"),
        ([{"name": "a", "version": "1", "vulns": []}], 0, "1 of 1 packages looked up, 0 vuln"),
        (
            [{"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": []}]}],
            1,
            "a 1: X-1, fixed in no version yet",
        ),
    ],
)
def test_the_audit_fails_for_a_vulnerability_alone(found, code, said):
    ended, lines = audit.verdict(found)
    assert ended == code
    assert said in "\n".join(lines)


def test_an_audit_that_cannot_run_is_told_from_one_that_found_nothing(tmp_path):
    assert audit.audit([tmp_path / "none.txt"], seconds=0.001) is None
