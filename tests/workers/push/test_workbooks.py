"""Workbooks of Excel as people and programs write them."""

import io
import zipfile
from datetime import datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from system_tools import package

from workers.push.rows import Layout
from workers.push.sources import BadSource, Reading, Row, rows

openpyxl = package("openpyxl", "pip install 'online-svm[excel]'")

from workers.push.workbook import Workbook  # noqa: E402


def saved(path, **sheets):
    """Save a workbook with these rows; a name that ends in _hidden is of a hidden sheet."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, lines in sheets.items():
        sheet = book.create_sheet(name.removesuffix("_hidden"))
        if name.endswith("_hidden"):
            sheet.sheet_state = "hidden"
        for line in lines:
            sheet.append(line)
    book.save(path)
    return path


@pytest.fixture
def read(tmp_path):
    """Return a function that returns the rows of a workbook, and what is told of its form."""

    def found(reading=None, **sheets):
        path, layout = saved(tmp_path / "a.xlsx", **sheets), Layout()
        return list(rows(str(path), reading or Reading(), layout)), layout.form

    return found


TABLE = [["a", "b", "y"], [1, "u", "x"], [2.5, "v", "z"]]
READ = [Row({"a": 1, "b": "u"}, "x"), Row({"a": 2.5, "b": "v"}, "z")]


def test_a_hidden_sheet_is_read_only_if_it_is_named(read):
    found, form = read(Codes_hidden=[["c", "y"], [7, "w"]], Data=TABLE)
    assert (found, form) == (READ, ["sheet Data, not read: Codes (hidden)"])
    found, form = read(Reading(sheet="Codes"), Codes_hidden=[["c", "y"], [7, "w"]], Data=TABLE)
    assert (found, form) == ([Row({"c": 7}, "w")], ["sheet Codes, not read: Data"])
    with pytest.raises(
        BadSource, match=r"no visible sheet has a table: .*--sheet.* Data \(hidden\)"
    ):
        read(Cover=[["Only a title"]], Data_hidden=TABLE)
    with pytest.raises(BadSource, match=r"no sheet 'data'; there are Cover, Data \(hidden\)"):
        read(Reading(sheet="data"), Cover=[["Only a title"]], Data_hidden=TABLE)


def test_a_sheet_of_another_file_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,x\n")
    with pytest.raises(BadSource, match="--sheet names a sheet of a workbook; this is csv"):
        rows(str(tmp_path / "a.csv"), Reading(sheet="Data"))


@pytest.mark.parametrize("left", [1, 2, 30])
@pytest.mark.parametrize("titles", [[], [["Claims of 2025"], [], ["As of April"]]])
def test_a_table_may_begin_in_any_column(read, left, titles):
    lines = [[None] * left + line for line in [*titles, *TABLE]] + [[None] * left + ["Total", 3.5]]
    found, form = read(Data=lines)
    assert found == READ
    assert form[1:] == (
        ["2 lines above the header left out, from 'Claims of 2025'"] if titles else []
    )


def test_cells_outside_of_the_table_are_told_or_refused(read):
    beside = [[*line, None, note] for line, note in zip(TABLE, (None, "why?", None), strict=True)]
    found, form = read(Data=beside)
    assert (found, form[1:]) == (READ, ["beside the table, not read: columns E to E"])
    long = [["a", "b", "y"], *[[i, "u", "xz"[i % 2]] for i in range(60)]]
    with pytest.raises(BadSource, match=r"row 63: cell E63 is outside of the table, .* are A to C"):
        read(Data=[*long, [], [1, "u", "x", None, "late"], [1, "u", "x"]])
    shifted = [[None, *line] for line in long]
    with pytest.raises(BadSource, match=r"row 62: cell A62 is outside of the table, .* are B to D"):
        read(Data=[*shifted, ["why?", 1, "u", "x"], [None, 1, "u", "x"]])
    found, _ = read(Data=[*shifted, ["A remark of Monday"]])
    assert len(found) == 60


def test_a_fault_of_the_header_names_its_row_and_column(read):
    titles = [["Claims of 2025"], []]
    with pytest.raises(
        BadSource, match=r"xlsx, row 3: two columns have the same name 'a', B and D"
    ):
        read(Data=[[None, *t] for t in [*titles, ["a", "b", "a"], *TABLE[1:], *TABLE[1:]]])
    with pytest.raises(BadSource, match="xlsx, row 1: column C has no name"):
        read(Data=[[None, "a", None, "y"], [None, 1, 2, "x"], [None, 3, 4, "z"]])
    with pytest.raises(BadSource, match="xlsx, row 1: no column 'q' for the label; there are a, b"):
        read(Reading(label="q"), Data=TABLE)


def test_a_fault_of_the_header_of_a_csv_file_names_its_line_and_column(tmp_path):
    path = tmp_path / "a.csv"
    body = "".join(f"{i};{i};x\n" for i in range(60))
    faults = {
        "a;a;y": "two columns have the same name 'a', 1 and 2",
        "a;;y": "column 2 has no name",
        "a;b;y": "no column 'q' for the id",
    }
    for header, fault in faults.items():
        path.write_text(f"Report;;\n;;\n{header}\n{body}")
        with pytest.raises(BadSource, match=f"a.csv, line 3: {fault}"):
            list(rows(str(path), Reading(id="q" if "b" in header else None)))
    path.write_text(f"a;;b;\n{body.replace(';x', ';;x')}")
    (first, *_) = rows(str(path), Reading(label="b", drop=("",)))
    assert first == Row({"a": 0.0})


def test_a_formula_that_was_never_computed_is_refused_unless_it_is_left_out(read):
    lines = [["a", "twice", "y"], [1, 2, "x"], [2, "=2*A3", "z"], ["Sum", "=SUM(B2:B3)"]]
    with pytest.raises(
        BadSource,
        match=r"row 3: twice is a formula that was never computed, in cell B3: open .* --d",
    ):
        read(Data=lines)
    found, _ = read(Reading(drop=("twice",)), Data=lines)
    assert found == [Row({"a": 1}, "x"), Row({"a": 2}, "z")]
    for place, line in [("C2", [1, 2, '="x"']), ("B1", None)]:
        header = ["a", "twice", "y"] if line else ["a", '="b"', "y"]
        with pytest.raises(BadSource, match=f"cell {place} is a fo|in cell {place}: open"):
            read(Data=[header, line or [1, 2, "x"], [3, 4, "z"]])


def test_a_list_of_claims_is_read_cell_by_cell(read):
    lines, expected = [["Claims, first quarter"], ["As of April"], []], []
    lines.append(["Claim", "Reported", "Sum", "Rate", "Cash?", "As text", "Clerk", "Refused"])
    for i in range(240):
        at = datetime(2025, 1, 3 + i // 24, i % 24, 15)
        rate, clerk = None if i % 40 == 1 else (250 + i) / 1000, ("Meier", None)[i % 3 == 0]
        cells = [f"{100 + i:06}", at, 50.5 + i, rate, i % 2 == 0]
        lines.append([*cells, f"{i},48", clerk, "ja" if i % 5 else "nein"])
        lines[-1][3] = "#DIV/0!" if rate is None else rate
        values = [cells[0], at.isoformat(), *cells[2:], i + 0.48, clerk]
        expected.append(Row(dict(zip(lines[3], values, strict=False)), lines[-1][-1]))
    lines.append(["Sum", None, "=SUM(D5:D244)"])
    lookup = [["code", "text"], ["X", "hidden"], ["Y", "hidden"]]
    found, form = read(Lookup_hidden=lookup, Claims=[[None, *line] for line in lines])
    assert found == expected
    assert form == [
        "sheet Claims, not read: Lookup (hidden)",
        "2 lines above the header left out, from 'Claims, first quarter'",
    ]


def whole_second(at):
    return at.replace(microsecond=0)


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-10**14, 10**14), st.floats(-1e12, 1e12),
    st.datetimes(datetime(1901, 1, 1), datetime(2200, 1, 1)).map(whole_second),
    st.times().map(whole_second), st.timedeltas(timedelta(0), timedelta(99)),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1).filter(
        lambda text: text[0] != "=" and "_x" not in text and not text.startswith("#")
    ),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(CELLS, max_size=6), max_size=8), st.booleans(), st.booleans())
def test_any_cells_are_those_that_openpyxl_reads(lines, write_only, mac):
    from openpyxl.utils.datetime import MAC_EPOCH

    book, file = openpyxl.Workbook(write_only=write_only), io.BytesIO()
    if mac:
        book.epoch = MAC_EPOCH
    sheet = book.create_sheet("a") if write_only else book.active
    for line in lines:
        sheet.append(line)
    book.save(file)
    (other,) = openpyxl.load_workbook(file).worksheets
    filled = {
        at: cells for at, cells in enumerate(other.iter_rows(values_only=True), 1)
        if any(cell is not None for cell in cells)
    }  # fmt: skip
    ours = Workbook(file)
    width = other.max_column
    assert {
        at: (*cells, *[None] * (width - len(cells))) for at, cells in ours.rows(ours.sheets[0])
    } == filled


SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    "<dimension ref='A1'/><sheetData>{}</sheetData></worksheet>"
)


def with_part(tmp_path, text, part="xl/worksheets/sheet1.xml", texts="<sst/>"):
    """Return a workbook one of whose parts is this text, with shared texts."""
    with zipfile.ZipFile(saved(tmp_path / "whole.xlsx", Data=TABLE)) as made:
        parts = {name: made.read(name).decode() for name in made.namelist()}
    links = "xl/_rels/workbook.xml.rels"
    shared = "<Relationship Id='s' Type='a/sharedStrings' Target='sharedStrings.xml'/>"
    parts[links] = parts[links].replace("</Relationships>", f"{shared}</Relationships>")
    parts |= {"xl/sharedStrings.xml": texts, part: text}
    path = tmp_path / "b.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def test_programs_may_leave_out_places_or_name_a_wrong_size(tmp_path):
    cell = "<c t='inlineStr'><is><t>{}</t></is></c>"
    lines = [("a", "y"), *(("1", "x"), ("2", "z")) * 30]
    body = "".join("<row>" + "".join(map(cell.format, line)) + "</row>" for line in lines)
    path = with_part(tmp_path, SHEET.format(body))
    assert list(rows(str(path), Reading())) == [Row({"a": 1.0}, "x"), Row({"a": 2.0}, "z")] * 30
    texts = (
        "<sst><si><t>a</t><rPh sb='0' eb='1'><t>ah</t></rPh></si>"
        "<si><r><t>y</t></r><r><t>_x0021_</t></r></si></sst>"
    )
    body = (
        "<row r='2'><c r='B2' t='s'><v>0</v></c><c r='D2' t='s'><v>1</v></c></row>"
        "<row r='9'><c r='B9'><v>1</v></c><c r='D9' t='str'><f>1</f><v>x</v></c></row>"
    )
    path = with_part(tmp_path, SHEET.format(body), texts=texts)
    with pytest.raises(BadSource, match="row 2: column C has no name"):
        list(rows(str(path), Reading()))
    assert list(rows(str(path), Reading(drop=("",)))) == [Row({"a": 1}, "x")]


def test_a_time_of_a_day_may_be_a_label_or_an_id(read):
    lines = [["id", "a", "y"], [time(8), 1, timedelta(hours=30)], [time(9), 2, timedelta(1)]]
    found, _ = read(Reading(id="id"), Data=lines)
    assert [(row.id, row.y) for row in found] == [
        ("08:00:00", "1 day, 6:00:00"), ("09:00:00", "1 day, 0:00:00")
    ]  # fmt: skip


MALFORMED = {
    "a far row": "<row r='999999999999'><c><v>1</v></c></row>",
    "rows backwards": "<row r='3'/><row r='2'/>",
    "a row of words": "<row r='x'/>",
    "a far column": "<row><c r='ZZZ1'><v>1</v></c></row>",
    "no place": "<row><c r='1A'><v>1</v></c></row>",
    "no shared text": "<row><c t='s'><v>99</v></c></row>",
    "no number": "<row><c><v>one</v></c></row>",
    "no date": "<row><c t='d'><v>tomorrow</v></c></row>",
    "a cut tag": "<row><c",
    "no end": "<row><c><v>1</v>",
    "an entity": "<row><c t='str'><v>&all;</v></c></row>",
    "deep": "<a>" * 1000,
    "a long text": f"<row><c t='str'><v>{'a' * 2_000_000}</v></c></row>",
    "a long tag": f"<row><c r='{'A' * 2_000_000}'/></row>",
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_sheet_is_refused_in_one_line(tmp_path, body):
    path = with_part(tmp_path, SHEET.format(body))
    with pytest.raises(BadSource, match=r"b\.xlsx: sheet Data is damaged: ") as refused:
        list(rows(str(path), Reading()))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("part", [
    "xl/workbook.xml", "xl/styles.xml", "xl/_rels/workbook.xml.rels", "_rels/.rels",
    "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml",
])  # fmt: skip
@pytest.mark.parametrize("text", [
    "", "no XML", "<a/>", "\0" * 100, "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
    "<workbook><sheet/><Relationship/><numFmt/><cellXfs><xf numFmtId='x'/></cellXfs></workbook>",
])  # fmt: skip
def test_a_malformed_part_is_refused_in_one_line(tmp_path, part, text):
    read_or_refused(with_part(tmp_path, text, part))


def test_a_workbook_with_any_byte_changed_is_read_or_refused(tmp_path):
    whole = saved(tmp_path / "a.xlsx", Data=TABLE).read_bytes()
    path = tmp_path / "b.xlsx"
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        read_or_refused(path)
        path.write_bytes(whole[:at])
        assert read_or_refused(path) is None


def read_or_refused(path):
    """Return the rows of a file; None if it is refused in one line."""
    try:
        return list(rows(str(path), Reading()))
    except BadSource as error:
        refused = str(error)
    assert refused.isprintable()
    assert len(refused) < 600
    return None
