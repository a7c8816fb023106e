"""Sources of rows: what each format gives, and what is refused, with its line and row."""

import gzip
import io
import math
import time

import pytest

from workers.push import datasets as data
from workers.push import formats
from workers.push.sources import BadSource, Reading, Row, rows

ARFF = "@relation r\n@attribute q numeric\n@attribute y {a}\n@data\n1,a\n"
IDS = (
    "@relation r\n@attribute id numeric\n@attribute q numeric\n@attribute n string\n"
    "@attribute y {a,b}\n@data\n7,1,x,a\n8,?,x,?\n"
)
COUNTRIES = (
    "@relation r\n@attribute q numeric\n@attribute country {DE,FR}\n@attribute kind {ham,spam}\n"
    "@data\n1,DE,ham\n2,?,spam\n"
)
CARS = """% cars
@relation cars
@attribute 'top speed' numeric
@ATTRIBUTE price real
@attribute class {yes, no}

@data
% the first
180, 9.5, yes
?,3,no
"""
SPARSE = "+1 1:0.5 3:2 # note\n-1 \n\n-1 2:1\n"
LEFT_OUT = {"drop": ("n",), "id": "id", "na": ("NA",)}
OF_COUNTRY = {"slices": ("country",)}


def read(tmp_path, name, text, **reading):
    """Return the rows of a file with this text; without one, of the data set of that name."""
    path = name
    if text is not None:
        path = tmp_path / name
        path.write_text(text)
    return list(rows(str(path), Reading(**reading)))


READ = {
    "csv: named features, the last column is the label": (
        "a.csv", "b,a,kind\n1,2.5,ham\n-3,?,spam\n", {},
        [Row({"b": 1.0, "a": 2.5}, "ham"), Row({"b": -3.0, "a": None}, "spam")]),
    "csv: another column is the label": (
        "a.csv", "a;b\n1;2\n", {"label": "a"}, [Row({"b": 2.0}, "1")]),
    "csv: no column is the label": (
        "a.csv", "a;b\n1;2\n", {"labelled": False}, [Row({"a": 1.0, "b": 2.0})]),
    "csv: without a header arrays": (
        "a.csv", "1,2,x\n\n3,4,y\n", {"header": False},
        [Row([1.0, 2.0], "x"), Row([3.0, 4.0], "y")]),
    "csv: the label is the last column that is not left out": (
        "a.csv", "q,kind,note\n1,ham,x\n", {"drop": ("note",)}, [Row({"q": 1.0}, "ham")]),
    "csv: a column without a name is left out": (
        "a.csv", ",q,y\n0,1,a\n", {"drop": ("",)}, [Row({"q": 1.0}, "a")]),
    "jsonl: entries or flat objects": (
        "a.jsonl",
        '\n{"x": [1, null], "y": "a", "id": "e1"}\n{"x": {"q": 1.5}, "y": true}\n'
        '{"q": 2, "y": 3}\n{"q": 2}\n', {},
        [Row([1, None], "a", "e1"), Row({"q": 1.5}, "true"), Row({"q": 2}, "3"), Row({"q": 2})]),
    "jsonl: the label is of a named key": (
        "a.jsonl", '{"q": 2, "kind": "k"}\n', {"label": "kind"}, [Row({"q": 2}, "k")]),
    "jsonl: probabilities of entries": (
        "a.jsonl", '{"x":[1],"p":0.5,"id":7}\n{"x":[2],"y":"a"}\n{"x":[3],"p":null,"y":1}\n', {},
        [Row([1], None, "7", "0.5"), Row([2], "a"), Row([3], "1")]),
    "jsonl: a flat p is a feature": (
        "a.jsonl", '{"q":2,"y":"a"}\n{"q":3,"y":"b","p":4}\n', {},
        [Row({"q": 2}, "a"), Row({"q": 3, "p": 4}, "b")]),
    "jsonl: columns left out, an id, texts for missing values": (
        "a.jsonl",
        '{"q":1,"r":"NA","n":"x","id":7,"y":"a"}\n{"x":{"q":2,"n":"x"},"y":"NA","id":8}\n',
        LEFT_OUT, [Row({"q": 1, "r": None}, "a", "7"), Row({"q": 2}, None, "8")]),
    "jsonl: slices by name, or as they stand in an entry": (
        "a.jsonl",
        '{"q": 1, "country": "DE", "y": "a"}\n{"x": [1], "y": "a", "s": {"country": "FR"}}\n'
        '{"x": [1], "y": "a"}\n{"q": 1, "y": "a"}\n', OF_COUNTRY,
        [Row({"q": 1}, "a", s={"country": "DE"}), Row([1], "a", s={"country": "FR"}),
         Row([1], "a"), Row({"q": 1}, "a")]),
    "libsvm: dense rows, empty ones included": (
        "a.libsvm", SPARSE, {},
        [Row([0.5, 0.0, 2.0], "+1"), Row([0.0] * 3, "-1"), Row([0.0, 1.0, 0.0], "-1")]),
    "libsvm: a declared width": (
        "a.libsvm", SPARSE, {"features": 4},
        [Row([0.5, 0.0, 2.0, 0.0], "+1"), Row([0.0] * 4, "-1"), Row([0.0, 1.0, 0.0, 0.0], "-1")]),
    "arff: named features, missing ones kept": (
        "a.arff", CARS, {},
        [Row({"top speed": 180.0, "price": 9.5}, "yes"),
         Row({"top speed": None, "price": 3.0}, "no")]),
    "arff: columns left out and an id": (
        "a.arff", IDS, LEFT_OUT, [Row({"q": 1.0}, "a", "7"), Row({"q": None}, None, "8")]),
    "csv: cells of text are sent as they are": (
        "a.csv", "zip,city,on,at,y\n007, Paris ,1e400,2024-01-05,a\n+1.50,?,yes,,b\n", {},
        [Row({"zip": "007", "city": "Paris", "on": math.inf, "at": "2024-01-05"}, "a"),
         Row({"zip": 1.5, "city": None, "on": "yes", "at": None}, "b")]),
    "csv: a time": (
        "a.csv", "q,at,y\n1,1970-01-01T00:00:02Z,a\n2,1700000000,b\n", {"time": "at"},
        [Row({"q": 1.0}, "a", time=2000), Row({"q": 2.0}, "b", time=1_700_000_000_000)]),
    "jsonl: a time": (
        "a.jsonl", '{"x":{"q":1},"y":"a","time":1700000000000}\n', {},
        [Row({"q": 1}, "a", time=1_700_000_000_000)]),
    "csv: a time beside labels alone": (
        "a.csv", "id,at,y\n7,1970-01-01,a\n", {"id": "id", "time": "at", "labels_only": True},
        [Row({}, "a", "7")]),
    "arff: a slice": (
        "a.arff", COUNTRIES, OF_COUNTRY,
        [Row({"q": 1.0}, "ham", s={"country": "DE"}), Row({"q": 2.0}, "spam")]),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "options", "expected"), READ.values(), ids=READ)
def test_each_format_gives_these_rows(tmp_path, name, text, options, expected):
    assert read(tmp_path, name, text, **options) == expected


LABELLED = "pid,name,kind\n1,2,ham\n"
ARRAYS = {"header": False}
REFUSED = [
    ("a.csv", "1,x\nred,x\n", ARRAYS, r"row 2: x1 is 'red', not a number"),
    ("a.csv", "inf,x\n", ARRAYS, r"row 1: x1 is 'inf', not a number"),
    ("a.csv", "1_0,x\n", ARRAYS, r"row 1: x1 is '1_0', not a number"),
    ("a.csv", "a,y\n1,x\n1\n", {}, r"row 2: not 2 columns, as the first line has"),
    ("a.csv", "a,b,y\n1,2,x\n1\n", {}, r"row 2: not 3 columns"),
    ("a.csv", "a,b,y\n1,2,x\n1,2,x,9\n", {}, r"row 2: not 3 columns"),
    ("a.csv", "a,a,y\n1,2,x\n", {}, r"two columns have the same name"),
    ("a.csv", "", {}, r"the source is empty"),
    ("a.csv", "\n1,a\n\nx,a\n", ARRAYS, r"a\.csv, line 4, row 2: x1 is 'x', not a number"),
    ("a.csv", ",q,y\n0,1,a\n", {}, r"column 1 has no name.*--drop ''"),
    ("a.csv", "a,y\n1,x\n", {"label": "z"},
     r"no column 'z' for the label; there are a, y; push --no-label takes a source without labels"),
    ("a.csv", LABELLED, {"drop": ("z",)}, "no column 'z' for the column to leave out; there are p"),
    ("a.csv", LABELLED, {"id": "z"}, "no column 'z' for the id"),
    ("a.csv", LABELLED, {"drop": ("kind",), "label": "kind"}, "no column 'kind' for the label"),
    ("a.jsonl", '{"q": 1}\n{"q": 1', {}, r"row 2: not jsonl"),
    ("a.jsonl", "[1, 2]", {}, r"row 1: not jsonl: a line must be a JSON object$"),
    ("a.jsonl", '{"x": [1], "y": 18446744073709551616}', {}, r"row 1: 1.8\d+e\+19 has more"),
    ("a.jsonl", '{"x": [1], "y": 1e20}', {}, r"row 1: 1e\+20 has more digits"),
    ("a.jsonl", '{"x": [1], "z": 1}', {}, r"row 1: unknown keys beside x, .*score_version: z"),
    ("a.libsvm", "+1 1:1\n-1 5:1\n", {"features": 3}, r"row 2: index 5 is outside 1 to 3"),
    ("a.libsvm", "1 1:2\n", {"drop": ("x",)}, "has no column 'x'"),
    ("a.libsvm", "1 1:2\n", {"id": "x"}, "has no column 'x'"),
    ("a.libsvm", "1 1:2\n", OF_COUNTRY, "no column 'country' for the slice"),
    ("a.arff",
     "@relation r\n@attribute q numeric\n@attribute q numeric\n@attribute y {a}\n@data\n1,2,a\n",
     {}, "two columns have the same name"),
    ("a.csv", "q,at,y\n1,soon,a\n", {"time": "at"}, r"row 1: at is 'soon', no time: send 2024-"),
    ("a.csv", "q,y\n1,a\n", {"time": "at"}, "no column 'at' for the time; there are q, y"),
    ("a.jsonl", '{"q": 1, "y": "a"}\n', {"time": "at"}, "no 'at' for the time"),
    ("a.libsvm", "1 1:2\n", {"time": "at"}, "no column 'at' for the time"),
    ("a.data", "1", {}, "--format"),
    ("a.xls", "PK", {}, r"a.xls: a spreadsheet; save its table as CSV or \.xlsx"),
    ("a.ods", "PK", {}, "a.ods: a spreadsheet; save its table as CSV"),
    ("iris", None, {}, r"iris: no such file, and no data set of that name"),
    ("iris", None, {"label": "y"}, r"iris: no such file, and no data set of that name"),
    ("iris.csv", None, {"label": "y"}, r"iris\.csv: no such file in /"),
    ("/nowhere/iris.csv", None, {"id": "y"}, r"/nowhere/iris\.csv: no such file$"),
    ("iris.xlsx", None, {}, r"iris\.xlsx: no such file in /"),
    ("Phishing", None, {"drop": ("x",)}, "has no column 'x'"),
    ("Phishing", None, {"id": "x"}, "has no column 'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "options", "message"), REFUSED)
def test_what_cannot_be_read_is_refused_with_the_line_and_the_row(
    tmp_path, name, text, options, message
):
    with pytest.raises(BadSource, match=message):
        read(tmp_path, name, text, **options)


def test_a_gzipped_file_and_a_byte_order_mark_are_read(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress("\ufeffa,y\n1,x\n".encode()))
    assert list(rows(str(path), Reading())) == [Row({"a": 1.0}, "x")]


def from_stdin(monkeypatch, text, **reading):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))
    return list(rows("-", Reading(**reading)))


def test_standard_input_is_read_as_json_lines_or_as_it_is_said_to_be(monkeypatch):
    assert from_stdin(monkeypatch, '{"x": [1], "y": "a"}\n') == [Row([1], "a")]
    assert from_stdin(monkeypatch, "\ufeffa,y\n1,x\n", format="csv") == [Row({"a": 1.0}, "x")]


@pytest.mark.parametrize(("text", "options", "is_advised"), [
    ("a,b,y\n1,2,x\n", {}, True), ("1\n", {}, True), ("+1 1:0.5\n", {}, True),
    ("a,y\n", {"format": "jsonl"}, False), ('{"x": [1]}\n{"x"\n', {}, False),
])  # fmt: skip
def test_a_format_is_advised_unless_one_was_named_or_an_earlier_line_was_read(
    monkeypatch, text, options, is_advised
):
    with pytest.raises(BadSource, match=r"row \d: not jsonl") as refused:
        from_stdin(monkeypatch, text, **options)
    assert ("JSON lines, else --format csv" in str(refused.value)) == is_advised
    assert ("--format" in str(refused.value)) == is_advised


def test_a_libsvm_file_is_read_as_the_benchmark_loader_reads_it():
    reading = Reading(format="libsvm", features=300)
    pushed = list(rows(str(data.data_directory() / "w1a"), reading))
    loaded = data.load("w1a")
    assert [row.x for row in pushed] == loaded.X.tolist()
    assert [row.y for row in pushed] == loaded.y.tolist()


def test_a_benchmark_set_is_pushed_as_arrays_in_the_order_of_its_columns():
    first = next(rows("car", Reading()))
    assert first == Row([3.0, 3.0, 0.0, 0.0, 0.0, 0.0], "unacc")


@pytest.mark.parametrize(
    ("name", "count", "width", "labels"),
    [
        ("Phishing", 1250, 9, {"true", "false"}),
        ("Bananas", 5300, 2, {"true", "false"}),
        ("ImageSegments", 2310, 18, {"brickface", "sky", "foliage", "cement", "window", "path",
                                     "grass"}),
    ],
)  # fmt: skip
def test_a_data_set_of_river_keeps_its_names(name, count, width, labels):
    found = list(rows(name, Reading()))
    assert len(found) == count
    assert {len(row.x) for row in found} == {width}
    assert {row.y for row in found} == labels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:1\n1 2147483647:1\n", r"a\.libsvm, line 2, row \d: index 2147483647 is outside 1 to"),
        ("1 99999999999999999999:1\n", r"index 99999999999999999999 is outside 1 to 100000"),
        (f"1 {'9' * 5000}:1\n", r"index 9{40} is outside"),
        ("1 -1:1\n", r"index -1 is outside 1 to 100000, the most features that a feed takes"),
        ("1 0:1\n", r"index 0 is outside 1 to"),
        ("1 a:1\n", r"index a is outside"),
        ("1 1:inf\n", r"feature 1 is inf, not a finite number"),
        ("1 1:2:3\n", r"line 1, row 1: not libsvm"),
    ],
)
def test_a_libsvm_index_is_bounded_before_a_row_is_made(tmp_path, text, message):
    began = time.monotonic()
    with pytest.raises(BadSource, match=message) as refused:
        read(tmp_path, "a.libsvm", text)
    assert time.monotonic() - began < 30
    assert "\n" not in str(refused.value)


ENDINGS = [
    ("a.csv", "q,y\n1,a\n"),
    ("a.jsonl", '{"q":1,"y":"a"}\n'),
    ("a.libsvm", "a 1:1\n"),
    ("a.arff", ARFF),
]


@pytest.mark.parametrize(("name", "text"), ENDINGS)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"\0", "a NUL character"),
        (
            b"\x81\xfe",
            "not (UTF-8 text; save it as UTF-8, or convert it, as from Windows: iconv "
            "|windows-1252 text; name its encoding, as --encoding cp850)",
        ),
        (b"1" * (formats.MAX_LINE_LENGTH + 1), "a line of more than 16,777,216 characters"),
    ],
    ids=["nul", "bytes", "long"],
)
def test_a_line_that_is_no_text_is_refused_in_one_line(tmp_path, name, text, bad, message):
    path = tmp_path / name
    path.write_bytes(text.encode() + bad)
    with pytest.raises(BadSource, match=rf"{name}, line \d+, row \d: {message}") as refused:
        list(rows(str(path), Reading()))
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(("name", "text", "message"), [
    *(("a.arff", f"@relation r\n@attribbte {'a' * size}\n@data\n1\n",
       r"a\.arff, line 2, row 1: .*@attribbte a") for size in (10, 1_000_000)),
    ("a.jsonl", '{"x":' + "[" * 100_000, r"a\.jsonl, line 1, row 1: not jsonl"),
], ids=["a header", "a long header", "deep JSON"])  # fmt: skip
def test_what_the_reader_quotes_and_deep_json_are_refused_in_one_short_line(
    tmp_path, name, text, message
):
    with pytest.raises(BadSource, match=message) as refused:
        read(tmp_path, name, text)
    assert len(str(refused.value)) < 1000
    assert str(refused.value).isprintable()


WIDE = {
    "a.csv": ",".join(f"c{i}" for i in range(300_000)) + "\n" + "1," * 299_999 + "a\n",
    "a.arff": "@relation r\n" + "".join(f"@attribute c{i} real\n" for i in range(300_000)),
    "a.libsvm": "1" + " 1:1" * 300_000 + "\n",
}


@pytest.mark.parametrize("name", WIDE)
def test_more_columns_than_any_feed_takes_are_refused_before_they_are_taken_apart(tmp_path, name):
    with pytest.raises(BadSource, match="a feed takes at most 100000") as refused:
        read(tmp_path, name, WIDE[name])
    line = 100_003 if name == "a.arff" else 1
    assert f"{name}, line {line}, row 1: " in str(refused.value)


def test_a_feed_s_most_columns_are_read_beside_the_label(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MAX_FEATURES", 1000)
    names = ",".join(["y", "u", "v", *(f"c{i}" for i in range(1000))])
    text = names + "\na,1,1" + ",1" * 1000 + "\n"
    (row,) = read(tmp_path, "a.csv", text, label="y", drop=("u", "v"))
    assert (len(row.x), row.y) == (1000, "a")


def test_a_compressed_file_that_is_cut_or_none_is_refused_in_one_line(tmp_path):
    whole = gzip.compress(b"q,y\n" + b"1,a\n" * 10_000)
    for packed in (whole[:-20], b"q,y\n1,a\n", whole[:40] + b"\0" * 40):
        (tmp_path / "a.csv.gz").write_bytes(packed)
        with pytest.raises(BadSource, match="cannot be read: "):
            list(rows(str(tmp_path / "a.csv.gz"), Reading()))
