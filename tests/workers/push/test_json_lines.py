"""Objects within JSON lines are named, or sent flat."""

import re

import pytest

from workers.push.sources import BadSource, Reading, Row, rows


@pytest.fixture
def read(tmp_path):
    def found(text, **options):
        (tmp_path / "a.jsonl").write_text(text)
        return list(rows(str(tmp_path / "a.jsonl"), Reading(**options)))

    return found


USER = '{"user": {"age": 35, "at": {"country": "FR"}}, "amount": 12.5, "y": "bad"}\n'


@pytest.mark.parametrize(("line", "message"), [
    (USER, "user is an object: a feature is one value; --flatten sends its parts as user.age, "
     "user.at, --drop user leaves it out"),
    ('{"a b": {}, "y": "x"}', "a b is an object: a feature is one value; --drop 'a b' leaves it"),
    ('{"tags": ["u"], "y": "x"}', "tags is a list: a feature is one value; --drop tags leaves"),
    ('{"x": {"q": [1]}, "y": "x"}', "q is a list: a feature is one value"),
    ('{"x": [1, [2]], "y": "x"}', "x[1] is a list: a feature is one value"),
    ('{"x": [{"q": 1}], "y": "x"}', "x[0] is an object: a feature is one value"),
    ('{"q": 1, "y": {"class": "x"}}', "the label is an object, not one value"),
    ('{"x": [1], "id": [7]}', "the id is a list, not one value"),
    ('{"x": [1], "p": {"a": 0.5}}', "the probability is an object, not one value"),
])  # fmt: skip
def test_an_object_or_a_list_is_refused_by_its_name(read, line, message):
    with pytest.raises(BadSource, match=r"a\.jsonl, line 1, row 1: " + re.escape(message)):
        read(line)


@pytest.mark.parametrize("line", [
    '{"q": 1, "q": 2, "y": "b"}', '{"x": {"q": 1, "q": 2}, "y": "b"}',
    '{"q": "a:b", "y": 1, "y": 2}', '{"q": 1, "s": {"a": {"q": 1, "q": 1}}}',
])  # fmt: skip
def test_a_name_that_stands_twice_is_refused(read, line):
    with pytest.raises(BadSource, match=r"line 1, row 1: the name '[qy]' stands twice in one obj"):
        read(line)


def test_objects_are_sent_flat_on_request(read):
    flat = {"user.age": 35, "user.at.country": "FR", "amount": 12.5}
    assert read(USER, flatten=True) == [Row(flat, "bad")]
    entry = '{"x": {"user": {"age": 35}, "a": 1}, "y": "bad"}\n'
    assert read(entry, flatten=True) == [Row({"user.age": 35, "a": 1}, "bad")]
    assert read(USER, flatten=True, label="user.at.country", drop=("y", "user.age")) == [
        Row({"amount": 12.5}, "FR")
    ]
    assert read(USER, drop=("user",)) == read(USER, flatten=True, drop=("user",))
    scored = '{"a": 1, "score": {"ham": 0.3, "spam": 0.7}, "y": "ham"}\n'
    (row,) = read(scored, flatten=True, score="score")
    assert (row.x, row.score) == ({"a": 1}, {"ham": 0.3, "spam": 0.7})


def test_what_cannot_be_flat_is_refused(read):
    with pytest.raises(BadSource, match=r"two values have the name 'a\.b' once objects are flat"):
        read('{"a": {"b": 1}, "a.b": 2, "y": "x"}', flatten=True)
    with pytest.raises(BadSource, match=r"a\.b is a list: a feature is one value"):
        read('{"a": {"b": [1]}, "y": "x"}', flatten=True)
    deep = '{"a":' * 900 + "1" + "}" * 900
    (row,) = read(deep, flatten=True)
    assert row.x == {".".join("a" * 900): 1}
