"""Messy tables of many kinds: each cell is read as a careful person reads it, or is asked for."""

from datetime import datetime

import pytest
from system_tools import package

from workers.push.columns import summary
from workers.push.reading import Reading
from workers.push.rows import Layout
from workers.push.sources import BadSource, rows

NBSP, THIN, NARROW = "\u00a0", "\u2009", "\u202f"
GERMAN = "Kontoauszug\nZeitraum:;01.01.2025;31.12.2025\n\n"
ROWS = "Tag;Text;Betrag;Art\n30.01.2025;Miete;-1.234,56;a\n31.01.2025;Lohn;3.000,00;b\n"
READ = [
    {"Tag": "2025-01-30", "Text": "Miete", "Betrag": -1234.56},
    {"Tag": "2025-01-31", "Text": "Lohn", "Betrag": 3000},
]


def column(name, values, expected, sep=";"):
    """A table of one column beside the label, and what is to be read in it."""
    lines = [f"{name}{sep}y", *(f"{value}{sep}{'ab'[i % 2]}" for i, value in enumerate(values))]
    return "\n".join(lines) + "\n", [{name: value} for value in expected]


RIGHT = {
    "titles above the header": (GERMAN + ROWS, READ),
    "one title": ("Umsätze\n" + ROWS, READ),
    "titles as wide as the table": ("Kontoauszug;;;\nKonto;DE12;;\n;;;\n" + ROWS, READ),
    "titles with the other separators": ("Bericht, Stand: 1. 2. 2025, Seite 1\n\n" + ROWS, READ),
    "six titles": ("A\nB\nC: 1\nD;E\nF\nG;1.2.2025\n" + ROWS, READ),
    "a line of groups above the names": ("Konto;;Umsatz;\n" + ROWS, READ),
    "a total at the end": (ROWS + "Summe;;1.765,44;\n", READ),
    "a short total at the end": (ROWS + "\nGesamt:;1.765,44\n", READ),
    "a remark at the end": (ROWS + "Ende des Auszugs;;;\n", READ),
    "a total, a blank line and a remark": (ROWS + "Total;;1.765,44;\n\nStand: heute\n", READ),
    "titles and a total": (GERMAN + ROWS + "Summe;;1.765,44;\n", READ),
    "separators after the last name": (
        "Tag;Betrag;Art;;\n30.01.2025;1,5;a;;\n31.01.2025;2,5;b;;\n",
        [{"Tag": "2025-01-30", "Betrag": 1.5}, {"Tag": "2025-01-31", "Betrag": 2.5}],
    ),
    "a caret as the separator": ("a^b^y\n1^2^x\n3^4^z\n", [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
    "a tilde as the separator": ("a~b~y\n1~2~x\n3~4~z\n", [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
    "several blanks as the separator": (
        "a    b  y\n1    2  x\n3   44  z\n", [{"a": 1, "b": 2}, {"a": 3, "b": 44}]
    ),
    "texts as quoted formulas": ('nr,y\n"=""00123""",a\n"=""00124""",b\n',
                                 [{"nr": "00123"}, {"nr": "00124"}]),
    "words for true and false": column(
        "aktiv", ["ja", "nein", "wahr", "falsch", "oui", "non", "sí", "no"],
        ["ja", "nein", "wahr", "falsch", "oui", "non", "sí", "no"]),
    "per cent": column("Satz", ["12,5 %", "3 %", "100%", "0 %"], [12.5, 3, 100, 0]),
    "per mille": column("Satz", ["1,5 ‰", "3 ‰"], [1.5, 3]),
    "negative in parentheses behind the currency": column("b", ["$(1,234.56)", "$5.00"],
                                                          [-1234.56, 5], "\t"),
    "a total in every column": (
        "Monat;n;m;y\n31.01.2025;1,5;2;a\n28.02.2025;2,5;3;b\nGesamt;4,0;5;\n",
        [{"Monat": "2025-01-31", "n": 1.5, "m": 2}, {"Monat": "2025-02-28", "n": 2.5, "m": 3}],
    ),
    "debit and credit": column("b", ["123,45 S", "5,00 H", "1.000,50 EUR H", "0,00 S"],
                               [-123.45, 5, 1000.5, 0]),
    "debit and credit in English": column("b", ["1,234.50 DR", "5.00 Cr"], [-1234.5, 5], "\t"),
    "wards": column("Station", ["1E5", "2B3", "4A", "3E2"], ["1E5", "2B3", "4A", "3E2"]),
    "wards among numbers": column("Station", ["1e5", "7", "12", "4A"], ["1e5", "7", "12", "4A"]),
    "exponents of programs": column("b", ["1E5", "2.5E-2", "7"], [1e5, 0.025, 7]),
    "exponents in lower case": column("b", ["1e5", "2e16", "7"], [1e5, 2e16, 7]),
    "months in English": column("am", ["5-Mar-2025", "Mar 7, 2025", "31-Dec-25", "1 Sept 2025"],
                                ["2025-03-05", "2025-03-07", "2025-12-31", "2025-09-01"]),
    "months in German": column("am", ["5. Januar 2025", "3. Mrz. 2025", "7 Dez 2025"],
                               ["2025-01-05", "2025-03-03", "2025-12-07"]),
    "months in French": column("le", ["5 janv. 2025", "14 juillet 2025", "1 août 2025"],
                               ["2025-01-05", "2025-07-14", "2025-08-01"]),
    "months in Spanish": column("el", ["5 ene 2025", "1 septiembre 2025", "2 dic. 2025"],
                                ["2025-01-05", "2025-09-01", "2025-12-02"]),
    "months in Italian": column("il", ["5 gen 2025", "1 maggio 2025", "2 ott 2025"],
                                ["2025-01-05", "2025-05-01", "2025-10-02"]),
    "months of Dutch and Portuguese": column("op", ["5 mrt 2025", "1 mei 2025", "2 fev 2025"],
                                             ["2025-03-05", "2025-05-01", "2025-02-02"]),
    "clocks": column("am", ["30.01.2025 8:05", "31.1.2025 23:59:59", "1.2.2025, 7:00 Uhr"],
                     ["2025-01-30T08:05:00", "2025-01-31T23:59:59", "2025-02-01T07:00:00"]),
    "blanks of print among thousands": column(
        "b", [f"1{NBSP}234,5", f"12{THIN}345,5", f"1{NARROW}234{NARROW}567,8{NBSP}€"],
        [1234.5, 12345.5, 1234567.8]),
    "phone numbers": column("tel", ["+49 171 1234567", "+491711234567", "0171 123456"],
                            ["+49 171 1234567", "+491711234567", "0171 123456"]),
    "postcodes": column("plz", ["01067", "10115", "80331"], ["01067", "10115", "80331"]),
    "postcodes of two countries": column("plz", ["01067", "10115", "A-1010", "80331"],
                                         ["01067", "10115", "A-1010", "80331"]),
    "months of a year": column("monat", ["10.2025", "11.2025", "12.2025"],
                               ["10.2025", "11.2025", "12.2025"]),
    "card numbers": column("karte", ["4111 1111 1111 1111", "5500 0000 0000 0004"],
                           ["4111 1111 1111 1111", "5500 0000 0000 0004"]),
    "addresses": column("ip", ["10.0.0.1", "192.168.1.10"], ["10.0.0.1", "192.168.1.10"]),
    "times of day": column("um", ["8:05", "23:59"], ["8:05", "23:59"]),
    "gaps of every kind": column(
        "b", ["1,5", "#N/A", "#NV", "-", "n/a", "k.A.", "#WERT!", "\\N", "(leer)", "?"],
        [1.5, *[None] * 9]),
    "gaps among texts": column("b", ["rot", "#NV", "-", "\\N", "blau"],
                               ["rot", None, None, None, "blau"]),
    "currencies before and behind": column("b", ["EUR 5,50", "5,50 EUR", "€5,50", "5,- €"],
                                           [5.5, 5.5, 5.5, 5]),
    "line breaks in names": ('"Betrag\nin EUR";y\n1,5;a\n2,5;b\n',
                             [{"Betrag\nin EUR": 1.5}, {"Betrag\nin EUR": 2.5}]),
}  # fmt: skip


@pytest.fixture
def read(tmp_path):
    def reading(text, **options):
        layout, path = Layout(), tmp_path / "a.csv"
        path.write_text(text, encoding="utf-8")
        found = list(rows(str(path), Reading(**options), layout))
        return [row.x for row in found], [*map(str, summary(found, layout))]

    return reading


@pytest.mark.parametrize("kind", RIGHT)
def test_a_messy_table_is_read_as_a_person_reads_it(read, kind):
    text, expected = RIGHT[kind]
    assert read(text)[0] == expected


DATA = ROWS.partition("\n")[2]
JOINED = {
    "the header again": ROWS + ROWS,
    "the header again in other case, with quotes": ROWS + '"TAG" ; "text";"Betrag";Art\n' + DATA,
    "the header again behind a mark": ROWS + "\ufeff" + ROWS,
    "a total, titles and the header again": ROWS + "Summe;;1,00;\n" + GERMAN + ROWS,
    "titles of the full width before the header": ROWS + "Konto;DE12;;\n;;;\n" + ROWS,
    "the line of Excel and the header again": "sep=;\n" + ROWS + "sep=;\n" + ROWS,
    "separators alone": ROWS + ";;;\n; ;;\n" + DATA + ";;;\n",
    "a line between": ROWS + "---;---;----;---\n" + DATA + "=====;;;\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", JOINED)
def test_two_exports_in_one_file_are_read_as_one_table(read, kind):
    found, lines = read(JOINED[kind])
    assert found == [*READ, *READ]
    assert any(line.startswith("  left out  line") for line in lines)


TOTALS = [
    "Summe;;1.765,44;EUR", "Summe;alle;1.765,44;", "Gesamtbetrag:;;1.765,44;EUR;",
    ";Total;1.765,44 €;",
    "Total général;;1.765,44;EUR", "Grand Total;;1.765,44;", "Sub-total;;1.765,44;USD",
    "Suma;2;1.765,44;", "Итого;;1.765,44;RUB", "合計;;1.765,44;", "Endsaldo;;1.765,44 H;EUR",
    "31.01.2025;Saldo;1.765,44;", "Gesamtergebnis;;1.765,44;", "Übertrag;;1.765,44;EUR",
    "Average;;882,72;", "SUMME;Miete und Lohn;1.765,44;EUR",
]  # fmt: skip


@pytest.mark.parametrize("total", TOTALS)
def test_a_total_is_no_example_at_the_end_and_refused_between_rows(read, total):
    table = ROWS.replace("Art\n", "Art;y\n").replace("a\n", "a;x\n").replace("b\n", "b;z\n")
    row = total if total.count(";") == 4 else f"{total};"
    found, lines = read(f"{table}{row}\n")
    assert (len(found), any("left out  line 4" in line for line in lines)) == (2, True)
    with pytest.raises(BadSource, match="line 4, row 3: a total between other rows: delete it"):
        read(f"{table}{row}\n{table.partition(chr(10))[2]}")


@pytest.mark.parametrize("total", ["Summe;;1.765,44;EUR", "Subtotal;1.765,44;;EUR"])
def test_a_currency_below_the_labels_is_no_class(read, total):
    table = "Nr;Betrag;Gebühr;y\n1;1.000,50;2,5;gut\n2;764,94;;schlecht\n"
    found, lines = read(f"{table}{total}\n")
    assert [x["Nr"] for x in found] == [1, 2]
    assert any("left out  line 4" in line for line in lines)


def test_a_brand_that_is_called_total_is_an_example(read):
    text = "Firma;Ort;Betrag;Art;y\nShell;;3,5;EUR;x\nTotal;;4,5;EUR;z\nTotal;;2,5;;x\n"
    assert [x["Firma"] for x in read(text)[0]] == ["Shell", "Total", "Total"]


ASKED = {
    "the header in another order": (ROWS + "Text;Tag;Betrag;Art\nMiete;31.01.2025;1,0;a\n",
                                    "line 4, row 3: 'text' and 'tag' are names of columns, but th"),
    "no header": ("red;small;yes\nred;big;yes\n", "if the first line is a row, say --no-header"),
    "codes that may be numbers": column("s", ["1E5", "3E2"], []),
    "a code after many numbers": ("s;y\n" + "7;a\n" * 1100 + "1E5;b\n", "say --text s for codes"),
    "a second line of names": ("Tag;Betrag;y\n[Datum];[EUR];\n30.01.2025;1,5;a\n31.1.2025;2,5;b\n",
                               "row 1 has .*second line of names, or of units, delete it"),
    "titles that may be a header": ("a;b;y\nc;d;e\n1;2;x\n3;4;z\n", "row 1 has 'c' where a has"),
    "a cell without a name": ("a;b;y;\n1;2;x;\n1;2;x;5\n", "column 4 has no name: name it"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ASKED)
def test_what_a_person_cannot_know_is_asked_for(read, kind):
    text, question = ASKED[kind]
    with pytest.raises(
        BadSource, match=question or "say which with|convert one of them|say --text s"
    ):
        read(text)


TOLD = {
    "a unit in words": (column("w", ["12 kg", "3,5 kg", "7 kg"], [])[0], "w: values such as '12 k"),
    "seconds": (column("b", ["123,45 S", "5,00 S"], [])[0], "b: values such as '123,45 S"),
    "days of Excel": (column("Datum", ["45658", "45659"], [])[0], "Datum is a number; if 45658 is "
                      "the day 2025-01-01, write it as that"),
    "days in one number": (column("date", ["20250131", "20250201"], [])[0], "if 20250131 is the d"),
    "no header": ("1.5;7;x\n2.5;8;z\n", "the names look like values: --no-header if the first l"),
    "one value in two cases": (column("Kanal", ["App", "APP", "Web"], [])[0],
                               "Kanal: App, APP are probably one value"),
    "limits among numbers": (column("b", ["1,5", "<5", "2,5", "3"], [])[0], "b: 1 of 4 values are"),
    "titles": (GERMAN + ROWS, "2 lines above the header left out, from 'Kontoauszug'"),
    "a total": (ROWS + "Summe;;1.765,44;\n", "left out  line 4, 'Summe'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TOLD)
def test_what_may_surprise_is_told_before_anything_is_sent(read, kind):
    text, told = TOLD[kind]
    assert any(told in line for line in read(text)[1])


def test_codes_are_read_as_text_where_the_question_is_answered(read):
    assert read("s;y\n1E5;a\n7;b\n", texts=("s",))[0] == [{"s": "1E5"}, {"s": "7"}]


def test_the_label_of_namibia_is_a_class_and_a_gap_is_none(read):
    gaps = ("", "n/a", "-", "NULL", "NaN", "#N/A", "--")
    label = read("q;y\n1;NA\n2;ham\n" + "".join(f"3;{gap}\n" for gap in gaps))[1][0]
    assert "y: NA 1, ham 1; 7 rows without" in label


def test_a_date_column_with_an_impossible_day_is_no_identifier(read):
    days = [f"2025-{month:02}-{day:02}" for month in (1, 2) for day in range(1, 29)]
    lines = read("am;y\n" + "".join(f"{day};a\n" for day in [*days, "2025-02-30"]))[1]
    assert not any("identifier" in line for line in lines)
    assert any("am: 1 of 57 values are text, such as '2025-02-30'" in line for line in lines)


def test_a_row_with_one_feature_at_the_end_is_an_example(read):
    assert read("a;b;y\n1;2;x\n5;;\n")[0] == [{"a": 1, "b": 2}, {"a": 5, "b": None}]
    assert read("a;b;y\nTotal;3;x\nTotal;;x\nTotal;1;z\n")[0] == [
        {"a": "Total", "b": 3}, {"a": "Total", "b": None}, {"a": "Total", "b": 1}
    ]  # fmt: skip


def test_a_plain_table_keeps_its_first_line_as_the_header(read):
    for text in ("a;b;y\n1;2;x\n1;2;x\n", "name;city;y\nBob;Rome;x\nEve;Oslo;z\n", "a;y\nb;c\n"):
        assert list(read(text)[0][0]) == text.partition("\n")[0].split(";")[:-1]
    with pytest.raises(BadSource, match="column 1 has no name"):
        read(";a;y\nr1;1;x\nr2;2;z\n")


def test_numbers_that_count_columns_are_names(read):
    for text in ("0;1;2;y\n5;6;7;x\n", "2023;2024;y\n5;6;x\n", "name;2.5;y\nb;5;x\n"):
        assert not any("look like values" in line for line in read(text)[1])


def test_the_first_sheet_with_a_table_is_read_and_its_titles_are_skipped(tmp_path):
    openpyxl = package("openpyxl", "pip install 'online-svm[excel]'")
    book = openpyxl.Workbook()
    book.active.title = "Cover"
    book.active.append(["Statement of 2025"])
    sheet, other = book.create_sheet("Data"), book.create_sheet("Old")
    for row in (["Statement"], [], ["From", datetime(2025, 1, 1)],
                ["day", "text", "amount", "rate", "y"],
                [datetime(2025, 1, 30), "rent", -1234.56, 0.12, "a"],
                [datetime(2025, 1, 31), "wage", 3000, 0.5, "b"],
                ["Total", None, 1765.44]):  # fmt: skip
        sheet.append(row)
    other.append(["a", "y"])
    other.append([1, "x"])
    path, layout = tmp_path / "a.xlsx", Layout()
    book.save(path)
    assert [row.x for row in rows(str(path), Reading(), layout)] == [
        {"day": "2025-01-30T00:00:00", "text": "rent", "amount": -1234.56, "rate": 0.12},
        {"day": "2025-01-31T00:00:00", "text": "wage", "amount": 3000, "rate": 0.5},
    ]
    assert layout.form == [
        "sheet Data, not read: Cover, Old", "2 lines above the header left out, from 'Statement'"
    ]  # fmt: skip
    from workers.push.convention import Convention

    known = Convention(units={"rate": "%"})
    with pytest.raises(BadSource, match=r"rate is 0\.12, but its other values are in %"):
        list(rows(str(path), Reading(known=known)))
