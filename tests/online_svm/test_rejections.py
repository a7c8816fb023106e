"""Cases of rejections: what a feed stores of one, and the sentence that readers make of it."""

import ast
import json
from hashlib import sha256
from pathlib import Path
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.errors import REJECTION_CODES, InvalidExample
from online_svm.rejections import CASES, SENTENCES, reason_of

ROOT = Path(__file__).parents[2]
GIVEN = {
    "feature": "age", "value": 1e200, "found": 3, "features": 4, "most": 5, "bytes": 7,
    "type": "set", "p": 1.5, "field": "z", "known": ["x", "y"], "slice": "land", "id": "tx-1",
    "label": "spam", "declared": ["a", "b"], "missing": 2, "count": 2,
}  # fmt: skip
"""A value of each parameter."""

STORED = "f171b42d0ea290c1"
"""Digest of all that is stored of the cases."""


def parameters(text):
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def error(case):
    named = parameters(SENTENCES[case])
    return InvalidExample(case, **{name: GIVEN[name] for name in sorted(named)})


def raised():
    """Yield each case that is raised by its name, with the names of its parameters."""
    for package in ("online_svm", "workers"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                is_error = getattr(getattr(node, "func", None), "id", "") == "InvalidExample"
                if is_error and node.args and isinstance(node.args[0], ast.Constant):
                    yield node.args[0].value, {keyword.arg for keyword in node.keywords}


def test_each_case_has_one_code_that_is_documented():
    assert set(CASES) == set(REJECTION_CODES)
    assert len(SENTENCES) == sum(map(len, CASES.values()))


def test_each_case_is_raised_with_the_parameters_of_its_sentences():
    for case, names in raised():
        wanted = parameters(SENTENCES[case])
        assert names == wanted, case


def test_there_is_no_case_that_nothing_raises():
    sources = [*(ROOT / "online_svm").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]
    text = "".join(path.read_text("utf-8") for path in sources if path.stem != "rejections")
    assert [case for case in SENTENCES if f'"{case.removeprefix("feature_")}"' not in text
            and f'"{case}"' not in text] == []  # fmt: skip


@pytest.mark.parametrize("case", SENTENCES)
def test_readers_make_the_sentence_of_what_is_stored(case):
    made = error(case)
    assert reason_of(json.loads(json.dumps(made.about))) == made.reason == str(made)
    assert made.code in CASES


def test_what_is_stored_changes_with_the_number_of_the_semantics_alone():
    """A new case may be added; it then changes the digest, and no feed."""
    stored = {case: error(case).about for case in SENTENCES}
    assert sha256(json.dumps(stored, sort_keys=True).encode()).hexdigest()[:16] == STORED


ANY = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["case", *GIVEN]), st.sampled_from(list(SENTENCES)) | ANY))
def test_anything_that_is_stored_has_a_sentence(about):
    assert isinstance(reason_of(about), str)


@given(ANY)
def test_anything_in_its_place_has_one_too(about):
    assert isinstance(reason_of(about), str)


def test_half_a_character_is_stored_escaped():
    about = InvalidExample("feature_nan", feature="\ud800").about
    assert json.dumps(about, ensure_ascii=False).encode() == (
        b'{"case": "feature_nan", "feature": "\\\\ud800"}'
    )
