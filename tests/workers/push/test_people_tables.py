"""Tables as people export them, cell by cell: the large ones where they are, small ones anywhere.

The large ones are in the folder `people` beside the data sets. A file `.expected.jsonl` has what a
careful person reads in each cell.
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

BANK = """Umsatzanzeige;Datei erstellt am: 02.04.2025 07:58
;;;
Konto:;Girokonto DE12

Nr.;Valuta;Umsatz;Währg.;Saldo;Art;Rückbuchung
00000371;03.01.25;230,29-;EUR;11.614,04 H;Gebühr;ja
00000372;14.01.25;460,29;CHF;976,05 S;Entgelt;nein
Summe;;230,00;EUR;;;
"""
BANK_READ = [
    {"Nr.": "00000371", "Valuta": "2025-01-03", "Umsatz": -230.29, "Währg.": "EUR",
     "Saldo": 11614.04, "Art": "Gebühr", "Rückbuchung": "ja"},
    {"Nr.": "00000372", "Valuta": "2025-01-14", "Umsatz": 460.29, "Währg.": "CHF",
     "Saldo": -976.05, "Art": "Entgelt", "Rückbuchung": "nein"},
]  # fmt: skip
HOSPITAL = """Patient\tAufnahme\tAlter\tCRP\tStation\tWieder\r
Nr.\tDatum\tJahre\tmg/l\t\t\r
0000012\t03-Jan-2025\t87\t10,3\t1E5\tN\r
0000013\t04-Jan-2025\t-\t<2,0\t2B3\tJ\r
0000014\t05-Jan-2025\t29\t6,7\t3E2\tN\r
"""
HOSPITAL_READ = [
    {"Patient": "0000012", "Aufnahme": "2025-01-03", "Alter": 87, "CRP": 10.3, "Station": "1E5",
     "Wieder": "n"},
    {"Patient": "0000013", "Aufnahme": "2025-01-04", "Alter": None, "CRP": "<2,0",
     "Station": "2B3", "Wieder": "j"},
    {"Patient": "0000014", "Aufnahme": "2025-01-05", "Alter": 29, "CRP": 6.7, "Station": "3E2",
     "Wieder": "n"},
]  # fmt: skip
SEPLINE = """sep=;
Nummer ;Menge;Preis;Retour
00000;18;44,58;
00001;46;15,18;x
Nummer ;Menge;Preis;Retour
00002;39;77,22;
"""
SEPLINE_READ = [
    {"Nummer": "00000", "Menge": 18, "Preis": 44.58, "Retour": None},
    {"Nummer": "00001", "Menge": 46, "Preis": 15.18, "Retour": "x"},
    {"Nummer": "00002", "Menge": 39, "Preis": 77.22, "Retour": None},
]


class Table(NamedTuple):
    """A table, the answer to its question, and a small one with the same cases."""

    text: str
    expected: list
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
    Table(BANK, BANK_READ, "bank.csv", "Rückbuchung", "Buchungs-Nr.", "say which with --day-first",
          (("order", "dmy"),)),
    Table(HOSPITAL, HOSPITAL_READ, "hospital.txt", "Wiederaufnahme", "Patient",
          "line 2, row 1: row 1 has 'Datum' where Aufnahme has .* of units, delete it"),
    Table(SEPLINE, SEPLINE_READ, "sepline.csv", "Retour", "Nummer"),
    Table("", [], "german.csv", "Prüfung", "Vorgangs-Nr"),
    Table("", [], "american.csv", "Outcome", "Claim #"),
]  # fmt: skip


def differences(table, path, label, id_, expected):
    """Ask the question of a table, give the answer, and return the cells that are read wrongly."""
    reading = Reading(label=label, id=id_)
    if table.question:
        with pytest.raises(BadSource, match=table.question):
            list(rows(str(path), reading))
        reading = Reading(label=label, id=id_, **dict(table.answer))
        if not table.answer:
            path.write_text(without_units(path.read_text()))
    found = list(rows(str(path), reading, Layout()))
    assert len(found) == len(expected)
    wrong = []
    for at, (row, cells) in enumerate(zip(found, expected, strict=True)):
        read = row.x | {label: row.y and row.y.lower(), id_: row.id}
        assert read.keys() == cells.keys()
        wrong += [(at, name, read[name], cell) for name, cell in cells.items()
                  if not is_same(read[name], cell)]  # fmt: skip
    return wrong


def is_same(read, cell):
    """Whether a cell is read as a person reads it; midnight may be written as the day."""
    at = time_of(cell) if isinstance(cell, str) and cell[:4].isdecimal() else None
    return read == cell or (at is not None and isinstance(read, str) and time_of(read) == at)


@pytest.mark.parametrize("table", [table for table in TABLES if table.text], ids=lambda t: t.name)
def test_a_small_table_of_each_case_is_read_as_a_person_reads_it(tmp_path, table):
    path = tmp_path / table.name
    path.write_text(table.text)
    first, *_, last = table.expected[0]
    assert differences(table, path, last, first, table.expected) == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_each_cell_of_a_table_of_people_is_read_as_a_person_reads_it(tmp_path, table):
    path, source = tmp_path / table.name, chosen_directory().parent / "people" / table.name
    if not source.is_file():
        no_copy(f"needs {table.name} in a folder `people` beside the data sets")
    path.write_bytes(source.read_bytes())
    answers = source.with_suffix(".expected.jsonl").read_text(encoding="utf-8").splitlines()
    expected = [json.loads(line) for line in answers]
    assert differences(table, path, table.label, table.id, expected) == []
