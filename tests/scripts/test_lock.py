"""The lock file covers all that is declared, names no index, and is what the audit reads."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import audit, make_lock

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "deploy" / "requirements.lock"


def locked():
    lines = [line for line in LOCK.read_text().splitlines() if not line.startswith("#")]
    return dict(line.split("==") for line in lines)


def test_every_line_is_one_exact_version_and_none_names_an_index():
    assert all(
        re.fullmatch(r"[a-z0-9-]+==[A-Za-z0-9.+!]+", f"{n}=={v}") for n, v in locked().items()
    )
    assert "://" not in LOCK.read_text()
    assert list(locked()) == sorted(locked())


def test_all_that_is_declared_is_locked_to_a_version_that_will_do():
    for requirement in make_lock.declared():
        version = locked()[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version, prereleases=True)


def test_what_the_declared_packages_need_is_locked_as_well():
    needed = make_lock.locked([Requirement("bokeh"), Requirement("redis[hiredis]")])
    assert {"jinja2", "markupsafe", "tornado", "hiredis"} <= set(needed)
    assert set(needed) <= set(locked())


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
def test_the_audit_fails_for_a_vulnerability_alone_and_says_what_it_could_not_do(found, code, said):
    ended, lines = audit.told(found)
    assert ended == code
    assert said in "\n".join(lines)


def test_an_audit_that_cannot_run_is_told_from_one_that_found_nothing(tmp_path):
    assert audit.audit(tmp_path / "none.lock", seconds=0.001) is None
