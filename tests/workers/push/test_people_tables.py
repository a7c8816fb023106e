"""Tables as people export them, cell by cell; each case by itself: `test_messy_tables.py`.

They are in the folder `people` beside the data sets. A file `.expected.jsonl` has what a careful
person reads in each cell.
"""

import json
from typing import NamedTuple

import pytest
from system_tools import no_copy

from online_svm.stream.cells import time_of
from workers.push.datasets import chosen_directory
from workers.push.reading import Reading
from workers.push.rows import Layout
from workers.push.sources import BadSource, rows


class Table(NamedTuple):
    """A table, and the answer to its question."""

    name: str
    label: str
    id: str
    question: str = ""
    answer: tuple = ()


def without_units(text):
    """The way on that the question names: delete the second line."""
    head, _, *rest = text.split("\n")
    return "\n".join([head, *rest])


TABLES = [
    Table("bank.csv", "Rückbuchung", "Buchungs-Nr.", "say which with --day-first",
          (("order", "dmy"),)),
    Table("hospital.txt", "Wiederaufnahme", "Patient",
          "line 2, row 1: row 1 has 'Datum' where Aufnahme has .* of units, delete it"),
    Table("sepline.csv", "Retour", "Nummer"),
    Table("german.csv", "Prüfung", "Vorgangs-Nr"),
    Table("american.csv", "Outcome", "Claim #"),
]  # fmt: skip


def differences(table, path, expected):
    """Ask the question of a table, give the answer, and return the cells that are read wrongly."""
    reading = Reading(label=table.label, id=table.id)
    if table.question:
        with pytest.raises(BadSource, match=table.question):
            list(rows(str(path), reading))
        reading = Reading(label=table.label, id=table.id, **dict(table.answer))
        if not table.answer:
            path.write_text(without_units(path.read_text()))
    found = list(rows(str(path), reading, Layout()))
    assert len(found) == len(expected)
    wrong = []
    for at, (row, cells) in enumerate(zip(found, expected, strict=True)):
        read = row.x | {table.label: row.y and row.y.lower(), table.id: row.id}
        assert read.keys() == cells.keys()
        wrong += [(at, name, read[name], cell) for name, cell in cells.items()
                  if not is_same(read[name], cell)]  # fmt: skip
    return wrong


def is_same(read, cell):
    """Whether a cell is read as a person reads it; midnight may be written as the day."""
    at = time_of(cell) if isinstance(cell, str) and cell[:4].isdecimal() else None
    return read == cell or (at is not None and isinstance(read, str) and time_of(read) == at)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_each_cell_of_a_table_of_people_is_read_as_a_person_reads_it(tmp_path, table):
    path, source = tmp_path / table.name, chosen_directory().parent / "people" / table.name
    if not source.is_file():
        no_copy(f"needs {table.name} in a folder `people` beside the data sets")
    path.write_bytes(source.read_bytes())
    answers = source.with_suffix(".expected.jsonl").read_text(encoding="utf-8").splitlines()
    expected = [json.loads(line) for line in answers]
    assert differences(table, path, expected) == []
