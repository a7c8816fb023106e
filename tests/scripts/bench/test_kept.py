"""What a benchmark has measured, kept in a file."""

import pytest

from scripts.bench.kept import KeptLines
from workers.errors import BadConfiguration


def kept(path):
    return KeptLines(path, float)


def test_what_is_added_is_there_for_the_next_run_and_a_line_that_was_cut_off_is_not(tmp_path):
    path, one, two = tmp_path / "kept.jsonl", *({"stream": "a", "draw": i} for i in range(2))
    first = kept(path)
    first.add(one, 0.5)
    first.add(two, 0.25)
    assert path.read_text() == (
        '{"stream":"a","draw":0,"measured":0.5}\n{"stream":"a","draw":1,"measured":0.25}\n'
    )
    path.write_bytes(path.read_bytes()[:-5])
    second = kept(path)
    assert (second.get(one), second.get(two)) == (0.5, None)
    second.add(two, 0.75)
    assert kept(path).get(two) == 0.75


@pytest.mark.parametrize("line", ["{}", "[1]", "no json", '{"stream": "a", "draw": 0}'])
def test_a_file_of_something_else_is_refused_and_stays(tmp_path, line):
    path = tmp_path / "kept.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(BadConfiguration, match="line 1: no cell of this benchmark"):
        kept(path)
    assert path.read_text() == f"{line}\n"


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(BadConfiguration, match=f"--results {tmp_path}: "):
        kept(tmp_path)
