import gzip
import io
import time

import pytest

from workers.push import datasets as data
from workers.push import formats
from workers.push.sources import BadSource, Reading, Row, rows


def read(tmp_path, name, text, **reading):
    path = tmp_path / name
    path.write_text(text)
    return list(rows(str(path), Reading(**reading)))


def test_a_csv_file_gives_named_features_and_its_last_column_as_label(tmp_path):
    assert read(tmp_path, "a.csv", "b,a,kind\n1,2.5,ham\n-3,?,spam\n") == [
        Row({"b": 1.0, "a": 2.5}, "ham"),
        Row({"b": -3.0, "a": None}, "spam"),
    ]


def test_another_column_can_be_the_label_or_none(tmp_path):
    text = "a;b\n1;2\n"
    assert read(tmp_path, "a.csv", text, label="a") == [Row({"b": 2.0}, "1")]
    assert read(tmp_path, "a.csv", text, labelled=False) == [Row({"a": 1.0, "b": 2.0})]


def test_a_csv_file_without_a_header_gives_arrays(tmp_path):
    assert read(tmp_path, "a.csv", "1,2,x\n\n3,4,y\n", header=False) == [
        Row([1.0, 2.0], "x"),
        Row([3.0, 4.0], "y"),
    ]


def test_a_gzipped_file_and_a_byte_order_mark_are_read(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress("\ufeffa,y\n1,x\n".encode()))
    assert list(rows(str(path), Reading())) == [Row({"a": 1.0}, "x")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,y\n1,x\nred,x\n", r"row 2: a is 'red', not a number"),
        ("a,y\ninf,x\n", r"row 1: a is 'inf', not a number"),
        ("a,y\n1_0,x\n", r"row 1: a is '1_0', not a number"),
        ("a,y\n1,x\n1\n", r"row 2: not 2 columns, as the first line has"),
        ("a,b,y\n1,2,x\n1\n", r"row 2: not 3 columns"),
        ("a,b,y\n1,2,x\n1,2,x,9\n", r"row 2: not 3 columns"),
        ("a,a,y\n1,2,x\n", r"two columns have the same name"),
        ("", r"the source is empty"),
    ],
)
def test_a_broken_csv_file_is_refused_with_the_row(tmp_path, text, message):
    with pytest.raises(BadSource, match=message):
        read(tmp_path, "a.csv", text)


def test_an_unknown_label_column_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(BadSource, match=r"no column 'z' for the label; there are a, y"):
        read(tmp_path, "a.csv", "a,y\n1,x\n", label="z")


def test_json_lines_are_entries_or_flat_objects(tmp_path):
    text = """
{"x": [1, null], "y": "a", "id": "e1"}
{"x": {"q": 1.5}, "y": true}
{"q": 2, "y": 3}
{"q": 2}
"""
    assert read(tmp_path, "a.jsonl", text) == [
        Row([1, None], "a", "e1"),
        Row({"q": 1.5}, "true"),
        Row({"q": 2}, "3"),
        Row({"q": 2}),
    ]


def test_json_lines_take_the_label_from_a_named_key(tmp_path):
    assert read(tmp_path, "a.jsonl", '{"q": 2, "kind": "k"}\n', label="kind") == [
        Row({"q": 2}, "k")
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"q": 1}\n{"q": 1', r"row 2: not jsonl"),
        ("[1, 2]", r"row 1: not jsonl: a line must be a JSON object$"),
        ('{"x": [1], "z": 1}', r"row 1: unknown keys beside x, y, p, id and s: z"),
    ],
)
def test_broken_json_lines_are_refused_with_the_row(tmp_path, text, message):
    with pytest.raises(BadSource, match=message):
        read(tmp_path, "a.jsonl", text)


def test_standard_input_is_read_as_json_lines(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO('{"x": [1], "y": "a"}\n'))
    assert list(rows("-", Reading())) == [Row([1], "a")]


@pytest.mark.parametrize("text", ["a,b,y\n1,2,x\n", "1\n", "+1 1:0.5\n"])
def test_other_standard_input_is_refused_with_the_option_that_names_its_format(monkeypatch, text):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    with pytest.raises(BadSource, match=r"row 1: not jsonl: .* JSON lines, else --format csv"):
        list(rows("-", Reading()))


def test_a_format_that_was_named_is_not_advised(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("a,y\n"))
    with pytest.raises(BadSource) as refused:
        list(rows("-", Reading(format="jsonl")))
    assert "--format" not in str(refused.value)


def test_a_later_line_that_is_broken_does_not_question_the_format(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO('{"x": [1]}\n{"x"\n'))
    with pytest.raises(BadSource, match="row 2: not jsonl") as refused:
        list(rows("-", Reading()))
    assert "--format" not in str(refused.value)


def test_a_libsvm_file_becomes_dense_rows_empty_ones_included(tmp_path):
    text = "+1 1:0.5 3:2 # note\n-1 \n\n-1 2:1\n"
    assert read(tmp_path, "a.libsvm", text) == [
        Row([0.5, 0.0, 2.0], "+1"),
        Row([0.0, 0.0, 0.0], "-1"),
        Row([0.0, 1.0, 0.0], "-1"),
    ]
    assert read(tmp_path, "a.libsvm", text, features=4)[1] == Row([0.0] * 4, "-1")


def test_a_libsvm_index_outside_the_declared_width_is_refused(tmp_path):
    with pytest.raises(BadSource, match=r"row 2: index 5 is outside 1 to 3"):
        read(tmp_path, "a.libsvm", "+1 1:1\n-1 5:1\n", features=3)


def test_a_libsvm_file_is_read_as_the_benchmark_loader_reads_it():
    reading = Reading(format="libsvm", features=300)
    pushed = list(rows(str(data.data_directory() / "w1a"), reading))
    loaded = data.load("w1a")
    assert [row.x for row in pushed] == loaded.X.tolist()
    assert [row.y for row in pushed] == loaded.y.tolist()


def test_an_arff_file_gives_named_features_and_keeps_missing_ones(tmp_path):
    text = """% cars
@relation cars
@attribute 'top speed' numeric
@ATTRIBUTE price real
@attribute class {yes, no}

@data
% the first
180, 9.5, yes
?,3,no
"""
    assert read(tmp_path, "a.arff", text) == [
        Row({"top speed": 180.0, "price": 9.5}, "yes"),
        Row({"top speed": None, "price": 3.0}, "no"),
    ]


def test_a_nominal_feature_of_an_arff_file_is_refused_by_name(tmp_path):
    text = "@relation r\n@attribute colour {red, blue}\n@attribute y {a, b}\n@data\nred,a\n"
    with pytest.raises(BadSource, match=r"row 1: colour is 'red', not a number"):
        read(tmp_path, "a.arff", text)


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


def test_an_unknown_source_is_refused_with_the_known_names():
    with pytest.raises(BadSource, match=r"iris: no such file, and no data set of that name"):
        rows("iris", Reading())


def test_a_file_of_unknown_kind_asks_for_its_format(tmp_path):
    (tmp_path / "a.data").write_text("1")
    with pytest.raises(BadSource, match="--format"):
        rows(str(tmp_path / "a.data"), Reading())


def test_a_column_of_probabilities_stands_in_for_missing_labels(tmp_path):
    text = "q,y,p\n1,ham,\n2,,0.25\n3,?,1\n4,spam,0.5\n"
    assert read(tmp_path, "a.csv", text, prob="p") == [
        Row({"q": 1.0}, "ham"),
        Row({"q": 2.0}, None, None, "0.25"),
        Row({"q": 3.0}, None, None, "1"),
        Row({"q": 4.0}, "spam", None, "0.5"),  # the feed refuses it, and says why
    ]


def test_json_lines_may_carry_probabilities(tmp_path):
    text = '{"x": [1], "p": 0.5, "id": 7}\n{"x": [2], "y": "a"}\n{"x": [3], "p": null, "y": 1}\n'
    assert read(tmp_path, "a.jsonl", text) == [
        Row([1], None, "7", "0.5"),
        Row([2], "a"),
        Row([3], "1"),
    ]
    flat = '{"q": 1, "doubt": 0.75}\n{"q": 2, "y": "a"}\n{"q": 3, "y": "b", "p": 4}\n'
    assert read(tmp_path, "b.jsonl", flat, label="y", prob="doubt") == [
        Row({"q": 1}, None, None, "0.75"),
        Row({"q": 2}, "a"),
        Row({"q": 3, "p": 4}, "b"),  # without the option a flat p is a feature
    ]


def test_an_arff_file_may_carry_probabilities(tmp_path):
    head = "@relation r\n@attribute q numeric\n@attribute p numeric\n@attribute y {a,b}\n@data\n"
    assert read(tmp_path, "a.arff", f"{head}1,?,a\n2,0.5,?\n", prob="p") == [
        Row({"q": 1.0}, "a"),
        Row({"q": 2.0}, None, None, "0.5"),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "q,y\n1,a\n"),
        ("a.libsvm", "1 1:2\n"),
        ("a.arff", "@relation r\n@attribute q numeric\n@attribute y {a,b}\n@data\n1,a\n"),
    ],
)
def test_a_column_of_probabilities_that_is_not_there_is_named(tmp_path, name, text):
    with pytest.raises(BadSource, match="no column 'p' for the probability"):
        read(tmp_path, name, text, prob="p")


def test_a_data_set_by_name_has_no_column_of_probabilities():
    with pytest.raises(BadSource, match="no column 'p' for the probability"):
        rows("Phishing", Reading(prob="p"))


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
    assert time.monotonic() - began < 5
    assert "\n" not in str(refused.value)


ARFF = "@relation r\n@attribute q numeric\n@attribute y {a}\n@data\n1,a\n"
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
        (b"\xff\xfe", "not UTF-8 text"),
        (b"1" * (formats.LONGEST + 1), "a line of more than 16,777,216 characters"),
    ],
    ids=["nul", "bytes", "long"],
)
def test_a_line_that_is_no_text_is_refused_in_one_line(tmp_path, name, text, bad, message):
    path = tmp_path / name
    path.write_bytes(text.encode() + bad)
    with pytest.raises(BadSource, match=rf"{name}, line \d+, row \d: {message}") as refused:
        list(rows(str(path), Reading()))
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_a_header_that_the_reader_quotes_is_refused_in_one_short_line(tmp_path, size):
    text = "@relation r\n@attribbte " + "a" * size + "\n@data\n1\n"
    with pytest.raises(BadSource, match=r"a\.arff, line 2, row 1: .*@attribbte a") as refused:
        read(tmp_path, "a.arff", text)
    assert len(str(refused.value)) < 1000
    assert str(refused.value).isprintable()


def test_deep_json_is_refused_in_one_line(tmp_path):
    with pytest.raises(BadSource, match=r"a\.jsonl, line 1, row 1: not jsonl") as refused:
        read(tmp_path, "a.jsonl", '{"x":' + "[" * 100_000)
    assert len(str(refused.value)) < 500


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


def test_as_many_columns_as_a_feed_takes_are_read_beside_label_and_those_left_out(tmp_path):
    names = ",".join(["y", "u", "v", *(f"c{i}" for i in range(100_000))])
    text = names + "\na,1,1" + ",1" * 100_000 + "\n"
    (row,) = read(tmp_path, "a.csv", text, label="y", drop=("u", "v"))
    assert (len(row.x), row.y) == (100_000, "a")


def test_a_byte_order_mark_is_read_on_standard_input_too(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffa,y\n1,x\n"))
    assert list(rows("-", Reading(format="csv"))) == [Row({"a": 1.0}, "x")]


def test_two_attributes_of_one_name_are_refused(tmp_path):
    text = (
        "@relation r\n@attribute q numeric\n@attribute q numeric\n@attribute y {a}\n@data\n1,2,a\n"
    )
    with pytest.raises(BadSource, match="two columns have the same name"):
        read(tmp_path, "a.arff", text)


def test_a_column_without_a_name_is_refused_with_how_to_leave_it_out(tmp_path):
    with pytest.raises(BadSource, match=r"column 1 has no name.*--drop ''"):
        read(tmp_path, "a.csv", ",q,y\n0,1,a\n")
    assert read(tmp_path, "a.csv", ",q,y\n0,1,a\n", drop=("",)) == [Row({"q": 1.0}, "a")]


def test_a_compressed_file_that_is_cut_or_none_is_refused_in_one_line(tmp_path):
    whole = gzip.compress(b"q,y\n" + b"1,a\n" * 10_000)
    for packed in (whole[:-20], b"q,y\n1,a\n", whole[:40] + b"\0" * 40):
        (tmp_path / "a.csv.gz").write_bytes(packed)
        with pytest.raises(BadSource, match="cannot be read: "):
            list(rows(str(tmp_path / "a.csv.gz"), Reading()))


def test_an_error_names_the_line_and_the_row(tmp_path):
    with pytest.raises(BadSource, match=r"a\.csv, line 4, row 2: q is 'x', not a number"):
        read(tmp_path, "a.csv", "q,y\n\n1,a\nx,a\n")
