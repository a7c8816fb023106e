"""Times of examples that may be other times, zones in one column, and ids that lost digits."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from system_tools import package

from workers.push.columns import summary
from workers.push.convention import Convention
from workers.push.preview import at_end
from workers.push.reading import Reading
from workers.push.rows import Layout
from workers.push.sources import BadSource, rows

DAY = datetime(2025, 12, 28, 14, 30, tzinfo=UTC)


def milliseconds(at):
    return round(at.timestamp() * 1000)


@pytest.fixture
def read(tmp_path):
    def reading(text, name="a.csv", layout=None, **options):
        path = tmp_path / name
        path.write_text(text)
        return list(rows(str(path), Reading(**options), layout or Layout()))

    return reading


NUMBERS = {  # of the same time, but its smaller parts
    "date": ["20251228", "2025122814", "202512281430", "20251228143000", "202512", "2025"],
    "excel": ["46019", "46019.604166667"],
    "minutes": [str(milliseconds(DAY) // 60_000)],
    "microseconds": [str(milliseconds(DAY) * 1000)],
    "nanoseconds": [str(milliseconds(DAY) * 1_000_000)],
}
CASES = [(unit, text) for unit, texts in NUMBERS.items() for text in texts]


@pytest.mark.parametrize(("unit", "text"), CASES)
@pytest.mark.parametrize("form", ["a.csv", "a.jsonl"])
def test_a_number_that_is_hardly_seconds_is_asked_for_as_a_time(read, unit, text, form):
    table = f"q,at,y\n1,{text},a\n" if form == "a.csv" else f'{{"q":1,"at":{text},"y":"a"}}\n'
    with pytest.raises(BadSource, match=rf"at is .*, which may be .*--time-unit {unit}"):
        read(table, form, time="at")
    (row,) = read(table, form, time="at", time_unit=unit)
    parts = {"2025": (2025, 1, 1), "202512": (2025, 12, 1), "20251228": (2025, 12, 28),
             "46019": (2025, 12, 28), "2025122814": (2025, 12, 28, 14)}  # fmt: skip
    expected = datetime(*parts[text], tzinfo=UTC) if text in parts else DAY
    assert abs(row.time - milliseconds(expected)) < 2
    assert read(table, form, time="at", known=Convention(time_unit=unit)) == [row]


@pytest.mark.parametrize(
    "text", ["1766932200", "1766932200.0", "1766932200000", "2025-12-28T14:30Z"]
)
def test_seconds_milliseconds_and_texts_of_these_years_are_not_asked_for(read, text):
    assert read(f"q,at,y\n1,{text},a\n", time="at")[0].time == milliseconds(DAY)


def test_seconds_that_count_from_a_start_are_asked_for_and_may_be_meant(read):
    with pytest.raises(
        BadSource, match=r"1970-01-01T00:00:07Z in seconds: say .* --time-unit seconds"
    ):
        read("q,at,y\n1,7,a\n", time="at")
    assert read("q,at,y\n1,7,a\n", time="at", time_unit="seconds")[0].time == 7000
    with pytest.raises(BadSource, match="at is 7, no time in date"):
        read("q,at,y\n1,7,a\n", time="at", time_unit="date")


def test_the_preview_shows_from_when_to_when_the_examples_are(read):
    layout = Layout()
    found = read("q,at,y\n1,20251228,a\n2,20260105,b\n", layout=layout, time="at", time_unit="date")
    assert "  time      at, from 2025-12-28 to 2026-01-05" in map(str, summary(found, layout))
    found = read("q,at,y\n1,28.12.2025 14:30,a\n", layout=layout, time="at")
    assert any("; without a time zone, read as UTC" in str(line) for line in summary(found, layout))


MIXED = [
    ("2025-10-26 02:30", "2025-10-26T03:00:00Z"), ("2025-10-26T02:30:00+01:00", "2025-10-26T04:00"),
    ("26.10.2025 02:30", "26.10.2025 03:00 UTC"), ("2025-10-26T02:30:00Z", "27.10.2025 02:30"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), MIXED)
@pytest.mark.parametrize("between", [0, 1200])
@pytest.mark.parametrize("options", [{}, {"time": "at"}], ids=["feature", "time"])
def test_times_with_and_without_a_zone_in_one_column_are_refused(
    read, one, other, between, options
):
    text = f"q;at;y\n1;{one};a\n" + f"1;{one};a\n" * between + f"1;{other};b\n"
    with pytest.raises(
        BadSource, match=r"at is .*, with a time zone, and .*, without one: write all"
    ):
        read(text, **options)
    known = read(text, zone="Europe/Berlin", **options) if "02:30" not in one[10:] else None
    assert known is None or len(known) == between + 2


def test_the_row_of_a_time_without_a_zone_is_named(read, tmp_path):
    with pytest.raises(BadSource) as refused:
        read("q;at;y\n1;2025-10-26T03:00Z;a\n1;2025-10-26 02:30;b\n")
    assert str(refused.value).startswith(f"{tmp_path / 'a.csv'}: at is '2025-10-26T03:00Z', with")
    assert str(refused.value).endswith("(row 2)")


FORMS = {
    "a.jsonl": '{{"q":1,"at":"{}","y":"a"}}\n{{"q":1,"at":"{}","y":"a"}}\n',
    "b.jsonl": '{{"x":{{"q":1,"at":"{}"}},"y":"a"}}\n{{"x":{{"q":1,"at":"{}"}},"y":"a"}}\n',
    "c.jsonl": '{{"x":{{"q":1}},"time":"{}"}}\n{{"x":{{"q":1}},"time":"{}"}}\n',
    "a.arff": "@relation r\n@attribute q numeric\n@attribute at string\n@attribute y {{a,b}}\n"
    "@data\n1,{},a\n1,{},b\n",
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("options", [{}, {"time": "at"}], ids=["feature", "time"])
def test_times_of_other_sources_follow_the_same_rule(read, name, options):
    if name[0] in "bc":
        options = {}
    local, with_zone = "2025-10-26T04:30:00", "2025-10-26T03:00:00Z"
    with pytest.raises(BadSource, match=r" is .*, with a time zone, and .*, without one: write "):
        read(FORMS[name].format(local, with_zone), name, **options)
    expected = read(FORMS[name].format("2025-10-26T03:30:00Z", with_zone), name, **options)
    for zone in ({"zone": "Europe/Berlin"}, {"known": Convention(zone="Europe/Berlin")}):
        assert read(FORMS[name].format(local, with_zone), name, **zone, **options) == expected
    assert len(read(FORMS[name].format(local, local), name, **options)) == 2


def test_texts_that_end_like_a_time_are_sent_as_they_are(read):
    texts = ["2025 at 10:30", "2025 at 10:30Z", "2025-10-26T10:30", "call T10:30Z"]
    text = "".join(f'{{"q":"{each}","y":"a"}}\n' for each in texts)
    assert [row.x["q"] for row in read(text, "a.jsonl")] == texts


@pytest.mark.parametrize("form", ["q,at,y\n1,{},a\n", '{{"q":1,"at":"{}","y":"a"}}\n'])
def test_a_time_after_the_year_9999_is_no_time(read, form):
    name = "a.csv" if form.startswith("q") else "a.jsonl"
    with pytest.raises(BadSource, match="at is '9999-12-31T23:59:59-12:00', no time"):
        read(form.format("9999-12-31T23:59:59-12:00"), name, time="at")


def test_local_times_are_read_in_their_zone_and_doubtful_hours_are_refused(read):
    options = {"time": "at", "zone": "Europe/Berlin"}
    times = ["26.10.2025 01:30", "26.10.2025 03:30", "27.10.2025", "2025-10-26T00:30Z"]
    text = "q;at;y\n" + "".join(f"1;{at};a\n" for at in times)
    berlin = timezone(timedelta(hours=2)), timezone(timedelta(hours=1))
    expected = [
        datetime(2025, 10, 26, 1, 30, tzinfo=berlin[0]),
        datetime(2025, 10, 26, 3, 30, tzinfo=berlin[1]),
        datetime(2025, 10, 27, tzinfo=UTC), datetime(2025, 10, 26, 0, 30, tzinfo=UTC),
    ]  # fmt: skip
    assert [row.time for row in read(text, **options)] == [*map(milliseconds, expected)]
    for at, fault in [("26.10.2025 02:30", "twice"), ("30.03.2025 02:30", "never")]:
        with pytest.raises(BadSource, match=f"which is {fault} in Europe/Berlin, as summer time"):
            read(f"q;at;y\n1;{at};a\n", **options)
    with pytest.raises(BadSource, match="--zone Mars: no time zone has this name"):
        read(text, time="at", zone="Mars")


def test_times_that_go_back_are_told_with_the_end_of_summer_time(read):
    layout = Layout()
    hours = ["01:50", "02:30", "02:59", "02:00", "02:30", "03:10"]
    text = "q;at;y\n" + "".join(f"1;26.10.2025 {hour};a\n" for hour in hours)
    found = read(text, layout=layout, time="at")
    told = [str(line) for line in at_end(layout)]
    assert len(found) == 6
    assert (
        "at goes back in 1 row, first from 2025-10-26T02:59:00Z to 2025-10-26T02:00:00Z" in told[0]
    )
    assert "--zone Europe/Berlin" in told[0]
    read("q;at;y\n1;2025-10-26;a\n1;2025-10-24;a\n", layout=layout, time="at")
    assert "sort the rows" in str(next(at_end(layout)))


LOST = ["9.00719925474099E+15", "9,00720E+15", "1,23E+17"]


@pytest.mark.parametrize("sent", LOST)
def test_an_id_that_a_spreadsheet_rounded_is_refused(read, sent):
    with pytest.raises(
        BadSource, match=r"line 2, row 1: the id .* has lost digits: export its col"
    ):
        read(f"n;q;y\n{sent};1;a\n", id="n")


def test_an_id_that_is_a_long_double_is_refused_and_a_long_integer_is_not(read, tmp_path):
    package("pyarrow", "pip install 'online-svm[archive]'")
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids, path = [2**53 + 1, 2**60], tmp_path / "a.parquet"
    assert [row.id for row in read("n;q;y\n9007199254740993;1;a\n1E5;1;a\n", id="n")] == [
        "9007199254740993", "1E5"
    ]  # fmt: skip
    for kind, is_refused in ((pa.int64(), False), (pa.float64(), True)):
        pq.write_table(
            pa.table({"n": pa.array(map(kind.to_pandas_dtype(), ids), kind), "y": ["a", "b"]}), path
        )
        if is_refused:
            with pytest.raises(
                BadSource, match=r"row 1: 9.0072e[+]15 has more digits than a number"
            ):
                list(rows(str(path), Reading(id="n")))
        else:
            assert [row.id for row in rows(str(path), Reading(id="n"))] == [*map(str, ids)]
    for kind, number, is_lost in ((pa.float32(), 2**24 - 1, False), (pa.float16(), 2048, True)):
        pq.write_table(pa.table({"n": pa.array([float(number)], kind), "y": ["a"]}), path)
        if is_lost:
            with pytest.raises(BadSource, match="row 1: the id 2048 may have lost digits, as its"):
                list(rows(str(path), Reading(id="n")))
        else:
            assert [row.id for row in rows(str(path), Reading(id="n"))] == [str(number)]
    text = '{"n": 9007199254740994.0, "q": 1, "y": "a"}\n'
    with pytest.raises(BadSource, match="has more digits than a number keeps"):
        read(text, "a.jsonl", id="n")


def test_a_long_id_of_a_sheet_is_refused(tmp_path):
    openpyxl = package("openpyxl", "pip install 'online-svm[excel]'")
    book, path = openpyxl.Workbook(), tmp_path / "a.xlsx"
    for row in (["n", "q", "y"], [2**53 + 2, 1, "a"], [2**53 + 1, 2, "b"]):
        book.active.append(row)
    book.save(path)
    with pytest.raises(BadSource, match="has more digits than a number keeps: send it as a text"):
        list(rows(str(path), Reading(id="n")))


def test_ids_that_are_days_or_decimals_are_sent_as_their_text(tmp_path):
    package("pyarrow", "pip install 'online-svm[archive]'")
    from decimal import Decimal

    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    for value, sent in ((DAY.date(), "2025-12-28"), (Decimal("12345678901234567890"), None)):
        pq.write_table(pa.table({"n": [value], "q": [1], "y": [value]}), path)
        (row,) = rows(str(path), Reading(id="n"))
        assert (row.id, row.y) == (sent or str(value),) * 2
