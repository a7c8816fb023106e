"""Tables as people write them: each convention is read back, or asked for."""

import io
import math
from datetime import datetime
from decimal import Decimal

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from system_tools import package

from workers.push import preview
from workers.push.columns import summary
from workers.push.convention import Convention
from workers.push.rows import Layout
from workers.push.sources import BadSource, Reading, Row, rows


def read(tmp_path, text, encoding="utf-8", name="a.csv", layout=None, **reading):
    """Return the rows of a file with this text."""
    path = tmp_path / name
    path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
    return list(rows(str(path), Reading(**reading), layout))


def cells(tmp_path, text, **options):
    return [row.x for row in read(tmp_path, text, **options)]


def german(count=1200):
    """A table with semicolons, decimal commas and dots, and what is to be read in it."""
    lines, expected = ["Nr;Gebucht am;Betrag;Seit (Tage);Auslastung;Händler;Prüfung\n"], []
    for i in range(count):
        amount, days, share = 20 + 13.07 * (i % 211), 900 + 17 * (i % 97), (i % 83) / 10 + 1
        at = datetime(2025, 1 + i % 12, 1 + i % 28, 8 + i % 12, i % 60)
        gap = ("-", "n/a", "")[i % 3] if i % 7 == 0 else None
        money = f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))
        lines.append(
            f"{100000 + i};{at:%d.%m.%Y %H:%M};{gap if gap is not None else f'{money} €'};"
            f"{f'{days:,}'.replace(',', '.')};{str(round(share, 1)).replace('.', ',')} %;"
            f"{('Müller & Söhne', chr(34) + 'Kiosk; Bahnhof' + chr(34), '')[i % 3]};"
            f"{('Betrug', 'BETRUG ', 'in Ordnung', '')[i % 4]}\n"
        )
        features = {
            "Gebucht am": at.isoformat(),
            "Betrag": None if gap is not None else round(amount, 2),
            "Seit (Tage)": days,
            "Auslastung": round(share, 1),
            "Händler": ("Müller & Söhne", "Kiosk; Bahnhof", None)[i % 3],
        }
        label = ("Betrug", "BETRUG", "in Ordnung", None)[i % 4]
        expected.append(Row(features, label, str(100000 + i)))
    return "".join(lines), expected


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8-sig", "utf-16", "utf-16-be"])
def test_a_table_of_a_country_is_read_as_a_person_reads_it(tmp_path, encoding):
    text, expected = german()
    assert read(tmp_path, text, encoding, label="Prüfung", id="Nr") == expected


WRITTEN = {
    "1.234,56 €": 1234.56, "€ 1.234,56": 1234.56, "-1.234,56": -1234.56, "1.234,56-": -1234.56,
    "5,- €": 5, "1 234,56": 1234.56, "1\u202f234,56 zł": 1234.56, "1'234,5": 1234.5,
    "1,5E+03": 1500, "(3,25)": -3.25, "−3,25": -3.25, "1.234.567": 1234567,
}  # fmt: skip


@pytest.mark.parametrize("text", WRITTEN)
def test_a_number_with_a_decimal_comma_is_read(tmp_path, text):
    assert cells(tmp_path, f"a;y\n{text};x\n") == [{"a": WRITTEN[text]}]


POINTED = {
    "$1,234.56": 1234.56, "-$5.00": -5, "$-5.00": -5, "($1,234.56)": -1234.56, "USD 3.50": 3.5,
    "CHF 1'234.50": 1234.5, "1’234.50": 1234.5, "1,23,456.78": 123456.78, "7.7%": 7.7,
    "1,234,567": 1234567, ".5": 0.5, "1e3": 1000, "+1.50": 1.5,
}  # fmt: skip


@pytest.mark.parametrize("text", POINTED)
def test_a_number_with_a_decimal_point_is_read(tmp_path, text):
    assert cells(tmp_path, f"a;y\n{text};x\n") == [{"a": POINTED[text]}]


TIMES = {
    "31.12.2025 14:30": "2025-12-31T14:30:00", "31.12.25, 08:05 Uhr": None,
    "12/31/2025 02:30 PM": "2025-12-31T14:30:00", "12/31/2025 12:05 a.m.": "2025-12-31T00:05:00",
    "2025/12/31": "2025-12-31", "31-Dec-2025": "2025-12-31", "Dec 31, 2025": "2025-12-31",
    "5. März 2025": "2025-03-05", "11.11.2025": "2025-11-11", "2025-12-31": "2025-12-31",
    "2025-12-31T10:00:00Z": "2025-12-31T10:00:00Z",
}  # fmt: skip


@pytest.mark.parametrize("text", TIMES)
def test_a_time_is_read_as_iso_or_asked_for(tmp_path, text):
    if TIMES[text] is None:
        with pytest.raises(BadSource, match=r"day first or .* year first: say which with --day"):
            cells(tmp_path, f"a;y\n{text};x\n")
    else:
        assert cells(tmp_path, f"a;y\n{text};x\n") == [{"a": TIMES[text]}]


KEPT = ["007", "12 apples", "1.2.3.4", "31/31/2025", "1_000", "inf", "12:30", "0171 1234"]


@pytest.mark.parametrize("text", KEPT)
def test_what_is_neither_number_nor_time_stays_text(tmp_path, text):
    assert cells(tmp_path, f"a;y\n{text};x\n") == [{"a": text}]


ASKED = [
    ("a;y\n3.102;x\n950;z\n", "a is '3.102' (row 1), which may be 3102 with a decimal comma or "
     "3.102 with a decimal point: say which with --decimal , or --decimal .",
     {"decimal": ","}, [{"a": 3102}, {"a": 950}]),
    ('a,y\n"1,134",x\n950,z\n', "a is '1,134' (row 1), which may be 1.134 with a decimal comma or "
     "1134 with a decimal point: say which with --decimal , or --decimal .",
     {"decimal": "."}, [{"a": 1134}, {"a": 950}]),
    ("at,y\n01/02/2025,x\n", "at is '01/02/2025' (row 1), which may be 2025-02-01 with the day "
     "first or 2025-01-02 with the month first: say which with --day-first or --month-first",
     {"order": "mdy"}, [{"at": "2025-01-02"}]),
    ('a,b,c,y\n"1,5",2.5,"3,102",x\n', "c is '3,102' (row 1), which may be 3.102 with a decimal "
     "comma or 3102 with a decimal point: say which with --decimal , or --decimal .",
     {"decimal": "."}, [{"a": 1.5, "b": 2.5, "c": 3102}]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "question", "answer", "expected"), ASKED)
def test_two_readings_are_asked_for_once_and_the_answer_is_followed(
    tmp_path, text, question, answer, expected
):
    with pytest.raises(BadSource) as asked:
        cells(tmp_path, text)
    assert str(asked.value) == f"{tmp_path / 'a.csv'}: {question}"
    assert cells(tmp_path, text, **answer) == expected


def test_all_questions_come_together(tmp_path):
    with pytest.raises(BadSource) as asked:
        cells(tmp_path, "a;at;y\n3.102;01/02/2025;x\n")
    assert "--decimal ." in str(asked.value)
    assert "--day-first" in str(asked.value)


def test_a_value_of_another_column_decides_for_the_table(tmp_path):
    text = "a;b;at;until;y\n3.102;20,95;01/02/2025;13/02/2025;x\n"
    expected = {"a": 3102, "b": 20.95, "at": "2025-02-01", "until": "2025-02-13"}
    assert cells(tmp_path, text) == [expected]


@pytest.mark.parametrize(("text", "message"), [
    ("a,y\n1.5,x\n\"2,5\",z\n", r"a has '1.5' \(row 1\) and '2,5' \(row 2\), in two conventions"),
    ("a,y\n$5,x\n€6,z\n", r"a has '\$5' \(row 1\) and '€6' \(row 2\), in two currencies: .*--drop"),
    ("at,y\n13/01/2025,x\n01/13/2025,z\n", "in two conventions: say which with --day-first or --m"),
    ("a,y\n1.5,x\n" + "2,x\n" * 1100 + '"3,5",z\n',
     r"line 1103, row 1102: a is '3,5', but the table is read with a decimal point"),
    ("a;y\n5 %;x\n" + "7 %;x\n" * 1100 + "6;z\n",
     "row 1102: a is '6', but its other values are in %"),
    ("a;y\n5;x\n" + "7;x\n" * 1100 + "6.102;z\n",
     r"a is '6.102', which may be 6102 with a decimal comma"),
])  # fmt: skip
def test_a_contradiction_is_refused_with_column_and_value(tmp_path, text, message):
    with pytest.raises(BadSource, match=message):
        cells(tmp_path, text)


def test_a_later_table_is_read_as_the_earlier_one_or_refused(tmp_path):
    layout = Layout()
    text, _ = german()
    read(tmp_path, text, "cp1252", layout=layout, label="Prüfung", id="Nr")
    stored = layout.cells.convention(layout.encoding)
    known = Convention.model_validate_json(stored.model_dump_json(exclude_defaults=True))
    assert known == stored
    options = {"known": known, "label": "Prüfung", "id": "Nr", "encoding": "cp1252"}
    head = text.partition("\n")[0]
    later = f"{head}\n1;03.04.2025 10:00;3.102 €;1.240;5 %;3.102;Betrug\n"
    assert cells(tmp_path, later, **options) == [{
        "Gebucht am": "2025-04-03T10:00:00", "Betrag": 3102, "Seit (Tage)": 1240,
        "Auslastung": 5, "Händler": "3.102",
    }]  # fmt: skip
    for old, new, message in [
        (
            "3.102 €",
            "20.95 €",
            "row 1: Betrag is '20.95 €', but this feed's tables are read with a",
        ),
        ("3.102 €", "20,95 $", "Betrag is '20,95 [$]', but its other values are in €"),
        (
            "03.04.",
            "12/31/",
            "Gebucht am is '12/31/2025 10:00', but this feed's tables are read wi",
        ),
    ]:
        with pytest.raises(BadSource, match=message):
            cells(tmp_path, later.replace(old, new), **options)
    assert cells(tmp_path, later.replace("3.102 €", "2.50 €"), decimal=".", **options)


def test_a_bad_row_among_the_examined_ones_comes_after_those_before_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;y\n1;x\n2;x\n3\n4;x\n")
    found = rows(str(path), Reading())
    assert [next(found).x, next(found).x] == [{"a": 1.0}, {"a": 2.0}]
    with pytest.raises(BadSource, match="line 4, row 3: not 2 columns"):
        next(found)


FORMS = [
    ("a|b|y\n1|2|x\n", {}), ("a\tb\ty\n1\t2\tx\n", {}), ("sep=;\na;b;y\n1;2;x\n", {}),
    ("a b y\n1 2 x\n", {}), ("'a';'b';'y'\n'1';'2';'x'\n", {}), ("a;b;y\r\n1;2;x\r\n", {}),
    ("a;b;y\r1;2;x\r", {}), ("a,b,y\n1,2,x\n\n", {}), ("\n\na;b;y\n1;2;x\n", {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options"), FORMS)
def test_separators_quotes_and_ends_of_lines_are_found(tmp_path, text, options):
    assert read(tmp_path, text, **options) == [Row({"a": 1.0, "b": 2.0}, "x")]


def test_blanks_in_names_do_not_make_a_blank_the_separator(tmp_path):
    text = "day of the birth;sum of the loan;y\n13.01.1980;1,5;x\n"
    assert cells(tmp_path, text) == [{"day of the birth": "1980-01-13", "sum of the loan": 1.5}]


def test_text_that_is_not_utf8_is_windows_1252_or_what_is_named(tmp_path):
    assert cells(tmp_path, "a;y\nMüller €;x\n", encoding="cp1252") == [{"a": "Müller €"}]
    path = tmp_path / "b.csv"
    path.write_bytes("a;y\nŁódź;x\n".encode("cp1250"))
    assert next(rows(str(path), Reading(encoding="cp1250"))).x == {"a": "Łódź"}
    for name in ("nonsense", "hex"):
        with pytest.raises(BadSource, match=f"--encoding {name}: no encoding of text has this na"):
            list(rows(str(path), Reading(encoding=name)))
    path.write_bytes("a;y\né;x\n".encode() + "é;x\n".encode("cp1252"))
    with pytest.raises(BadSource, match="line 3, row 2: not utf-8 text; name its encoding"):
        list(rows(str(path), Reading()))


DOUBTFUL = [("cp1250", "Łódź"), ("cp1250", "piątek"), ("cp1251", "Москва"), ("mac-roman", "für"),
            ("cp850", "schön"), ("cp850", "für"), ("cp1253", "Αθήνα")]  # fmt: skip


@pytest.mark.parametrize(("encoding", "text"), DOUBTFUL)
def test_text_of_another_encoding_is_asked_for_and_read_if_it_is_named(tmp_path, encoding, text):
    path = tmp_path / "a.csv"
    path.write_bytes(f"a;y\n{text};x\n".encode(encoding))
    with pytest.raises(BadSource, match="name its encoding, as --encoding cp"):
        list(rows(str(path), Reading()))
    assert next(rows(str(path), Reading(encoding=encoding))).x == {"a": text}


def test_western_text_is_not_doubted(tmp_path):
    text = "Ærøskøbing, ¿Qué?, 5 m³/h, £5, Façade, Søren, Übergröße, L’été, 20 €, Šimek, ¡Hola!"
    assert cells(tmp_path, f'a;y\n"{text}";x\n', encoding="cp1252") == [{"a": text}]


def test_gaps_are_null_in_every_column_and_codes_stay_codes(tmp_path):
    text = "a;b;c;y\n1;red;01067;x\n-;n/a;10115;z\nNA;-;?;-\nnone;NA;;n/a\n"
    assert read(tmp_path, text) == [
        Row({"a": 1.0, "b": "red", "c": "01067"}, "x"),
        Row({"a": None, "b": None, "c": "10115"}, "z"),
        Row({"a": None, "b": None, "c": None}),
        Row({"a": None, "b": "NA", "c": None}),
    ]


def test_plus_and_minus_are_labels_together(tmp_path):
    assert [row.y for row in read(tmp_path, "a;y\n1;+\n2;-\n")] == ["+", "-"]


def test_labels_of_another_case_are_joined_on_request(tmp_path):
    text = "a;y\n1;Fraud\n2;fraud \n3;FRAUD\n"
    assert [row.y for row in read(tmp_path, text)] == ["Fraud", "fraud", "FRAUD"]
    assert [row.y for row in read(tmp_path, text, label_case="lower")] == ["fraud"] * 3
    lines = '{"a":1,"y":"Fraud "}\n'
    assert [r.y for r in read(tmp_path, lines, name="a.jsonl", label_case="lower")] == ["fraud"]


def told(tmp_path, text, **options):
    layout = Layout()
    found = read(tmp_path, text, layout=layout, **options)
    return [*map(str, summary(found, layout)), *preview.columns(found, layout)]


def test_the_look_names_kinds_values_gaps_and_labels_of_one_class(tmp_path):
    text, _ = german(300)
    lines = told(tmp_path, text, encoding="cp1252", label="Prüfung", id="Nr")
    assert "  table     separator semicolon; windows-1252, as it is not UTF-8; decimal comma; " in (
        "\n".join(lines)
    )
    assert any("Betrag" in line and "€' is" in line for line in lines)
    assert (
        "  warning   labels BETRUG 75, Betrug 75 are probably one class: --label-case lower joins "
        "them" in "\n".join(lines).replace("Betrug 75, BETRUG 75", "BETRUG 75, Betrug 75")
    )
    assert any(line.split()[:3] == ["Betrag", "number", "14%"] for line in lines)
    assert any(line.split()[:2] == ["Händler", "words"] for line in lines)
    plain = told(tmp_path, "a,y\n1.5,x\n2,z\n")
    assert not any(line.startswith(("  table", "  values")) for line in plain)


def test_probable_leaks_and_identifiers_are_told(tmp_path):
    lines = ["a,again,closed,close,number,code,y"]
    for i in range(400):
        fraud = i % 5 == 0
        lines.append(
            f"{i % 37},{'abc'[fraud]},{'2025-01-01' if fraud else ''},{fraud * 100 + i % 41},"
            f"{i * 3},T{i}X,{'fraud' if fraud else 'legit'}"
        )
    warned = [line for line in told(tmp_path, "\n".join(lines) + "\n") if "warning" in line]
    assert [line.split()[1] for line in warned] == ["number", "code", "again", "closed", "close"]
    assert "again is the label under another name" in warned[2]
    assert "closed is filled for some labels" in warned[3]
    assert "close nearly determines the label: known beforehand? If not: --drop close" in warned[4]


SPELLINGS = [
    ("0", "0.0"), ("0", "-0"), ("1", "+1"), ("1", "1e0"), ("1", "01"), ("1", "１"), ("1", "1,0"),
    ("1", "١"), ("-1", "−1.00"), ("é", "e\u0301"), ("Betrug", "BETRUG"), ("straße", "STRASSE"),
    ("in Ordnung", "in\u00a0ordnung"), ("not fraud", "Not_Fraud"), ("no", "no\u200b"),
    (">50K", ">50K."), ("ja", "ja"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
@pytest.mark.parametrize("before", [0, 1500])
def test_labels_that_are_probably_one_class_are_told_in_any_row(
    run_command, tmp_path, one, other, before
):
    path = tmp_path / "a.csv"
    path.write_text("q;y\n" + f"1;{one}\n" * (before + 1) + f"2;{other}\n1;b\n2;c\n")
    err = run_command("push", "f", path, "--limit", "0", "--redis", "redis://127.0.0.1:1")[2]
    assert ("probably" in err) == (one != other)
    assert err.count("warning") == (one != other)


def test_labels_that_differ_are_no_spellings_of_one_class():
    labels = ["0", "1", "-1", "10", "1.5", "A", "A+", "A-", "B", "no", "none", "1a", "", "ham"]
    assert len({preview.same_class(label) for label in labels}) == len(labels)


def test_each_column_is_told_although_another_name_begins_alike(run_command, tmp_path):
    path = tmp_path / "a.csv"
    early, late = '"about 3",1,x\n', '3,"about 4",x\n'
    path.write_text("Tage,Tag,y\n" + "3,4,x\n4,5,z\n" * 50 + early + "3,4,x\n" * 1500 + late)
    out, err = run_command("push", "f", path, "--limit", "0", "--json", "--redis", "redis://h:1")[
        1:
    ]
    assert "Tage: 1 of 501 values are text" in err.replace("of 500", "of 501")
    assert "  warning   Tag: 1 of 1,602 values are text, such as 'about 4'" in err
    found = [orjson.loads(line) for line in out.splitlines()]
    told = [each["text"] for each in found if each["kind"] == "warning"]
    assert [line.split(" ", 1)[1].strip() for line in map(str.strip, err.splitlines())
            if line.startswith("warning")] == told  # fmt: skip
    assert {each["column"] for each in found if each["kind"] == "warning"} == {"Tage", "Tag"}
    assert found[-1] == {"kind": "result", "rows": 1602, "sent": False}


def test_texts_among_numbers_and_bare_numbers_among_per_cents_are_told(tmp_path):
    text = "a;b;y\n1,5;5 %;x\n2;6;x\nabout 3;7 %;z\n"
    lines = "\n".join(told(tmp_path, text))
    assert "a: 1 of 3 values are text, such as 'about 3': --na 'about 3' makes it a gap" in lines
    assert "b has values with % and without" in lines


def test_a_parquet_file_is_read(tmp_path):
    package("pyarrow", "pip install 'online-svm[archive]'")
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({
        "at": [datetime(2025, 2, 1), None], "a": [Decimal("1.50"), None], "b": [True, False],
        "c": [math.nan, 2.0], "y": ["x", "z"],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet")
    assert list(rows(str(tmp_path / "a.parquet"), Reading())) == [
        Row({"at": "2025-02-01T00:00:00", "a": 1.5, "b": True, "c": None}, "x"),
        Row({"at": None, "a": None, "b": False, "c": 2.0}, "z"),
    ]
    lines = told(tmp_path, (tmp_path / "a.parquet").read_bytes(), name="a.parquet")
    assert "  features  2 numbers, 1 time and 1 boolean, sent by name: at, a, b, c" in lines
    assert [line.split()[1] for line in lines[-4:]] == ["time", "number", "boolean", "number"]
    pq.write_table(pa.table({"a": [[1]], "y": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(BadSource, match=r"b\.parquet: a is of type list"):
        list(rows(str(tmp_path / "b.parquet"), Reading()))
    with pytest.raises(BadSource, match="standard input cannot be parquet"):
        list(rows("-", Reading(format="parquet")))


# A table is written in a convention, and read back equal.

CONVENTIONS = [(",", "."), (",", " "), (",", "'"), (",", ""), (".", ","), (".", "'"), (".", "")]
ORDERS = {"dmy": "%d{0}%m{0}%Y %H:%M", "mdy": "%m{0}%d{0}%Y %I:%M %p", "ymd": "%Y{0}%m{0}%d %H:%M"}


@st.composite
def conventions(draw):
    decimal, thousands = draw(st.sampled_from(CONVENTIONS))
    return {
        "decimal": decimal,
        "thousands": thousands,
        "order": draw(st.sampled_from([*ORDERS])),
        "by": draw(st.sampled_from("./-")),
        "unit": draw(st.sampled_from([" €", "$", " %", "", " CHF"])),
        "separator": draw(st.sampled_from(";\t|,")),
        "encoding": draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252", "utf-16-le"])),
        "gap": draw(st.sampled_from(["n/a", "-", "", "NA", "?", "--"])),
    }


def written(value, how):
    if value is None:
        return how["gap"]
    text = f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
    signs = {",": how["thousands"], ".": how["decimal"]}
    text = "".join(signs.get(sign, sign) for sign in text)
    return f"{how['unit']}{text}" if how["unit"] == "$" else f"{text}{how['unit']}"


values = st.lists(
    st.tuples(
        st.none() | st.integers(-(10**8), 10**8).map(lambda n: n / 100),
        st.none() | st.integers(0, 10**6),
        st.datetimes(datetime(1970, 1, 1), datetime(2090, 1, 1)).map(
            lambda at: at.replace(second=0, microsecond=0)
        ),
        st.sampled_from(["Müller & Söhne", 'Zum "Adler"', "a;b", "c,d", "Łódź", "12 apples"]),
        st.sampled_from(["ja", "nein"]),
    ),
    min_size=1, max_size=30,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(values, conventions())
def test_a_table_in_any_convention_is_read_back_or_asked_for(tmp_path_factory, found, how):
    import csv

    text = io.StringIO()
    out = csv.writer(text, delimiter=how["separator"])
    out.writerow(["Betrag", "Tage", "am", "Händler", "Antwort"])
    form = ORDERS[how["order"]].format(how["by"])
    if how["encoding"] == "cp1252":
        found = [(*row[:3], row[3].replace("Łódź", "Lodz"), row[4]) for row in found]
    for amount, days, at, name, label in found:
        plain = how | {"unit": ""}
        out.writerow([written(amount, how), written(days, plain), at.strftime(form), name, label])
    path = tmp_path_factory.mktemp("t") / "a.csv"
    path.write_bytes(text.getvalue().encode(how["encoding"]))
    try:
        read_back = list(rows(str(path), Reading(label="Antwort")))
    except BadSource as error:
        assert "say which with --" in str(error)  # noqa: PT017
        order = None if how["order"] == "ymd" else how["order"]
        reading = Reading(label="Antwort", decimal=how["decimal"], order=order)
        read_back = list(rows(str(path), reading))
    assert [row.y for row in read_back] == [row[4] for row in found]
    for row, (amount, days, at, name, _) in zip(read_back, found, strict=True):
        assert list(row.x) == ["Betrag", "Tage", "am", "Händler"]
        read_amount, read_days, read_at, read_name = row.x.values()
        assert (read_amount, read_days, read_name) == (amount, days, name)
        assert datetime.fromisoformat(read_at) == at


@pytest.mark.parametrize("line", range(1, 5))
def test_a_quote_that_is_not_closed_is_named_with_its_line(tmp_path, line):
    lines = ["q,y", "1,a", "2,b", "3,c"]
    lines[line - 1] = lines[line - 1].replace(",", ',"')
    (tmp_path / "a.csv").write_text("\n".join(lines))
    with pytest.raises(BadSource, match=rf"line {line}.*a quote is opened and not closed"):
        list(rows(str(tmp_path / "a.csv"), Reading()))


def test_a_quoted_cell_of_two_lines_at_the_end_is_whole(tmp_path):
    (tmp_path / "a.csv").write_text('q,y\n1,"a\nb"')
    assert [row.y for row in rows(str(tmp_path / "a.csv"), Reading())] == ["a\nb"]
