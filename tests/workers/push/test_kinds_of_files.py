"""Files of other kinds, and files that change, are refused in one clear line."""

import gzip
import io
import os
import zipfile

import pandas as pd
import pytest
from system_tools import package

from workers.push.sources import BadSource, Reading, rows


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
    return file.getvalue()


REFUSED = [
    ("a.zip", zipped(), "an archive: unpack it, and push a file in it"),
    ("a.tar.gz", gzip.compress(b"a"), "an archive: unpack it"),
    ("a.csv.xz", b"\xfd7zXZ\0", "an archive: unpack it"),
    ("a.csv", zipped(), r"an archive: .* \(the name of an Excel workbook ends in \.xlsx\)"),
    ("a.jsonl", gzip.compress(b"{}"), r"compressed by gzip: give it a name that ends in \.gz"),
    ("a.csv", b"\xd0\xcf\x11\xe0" * 9, r"an old spreadsheet \(\.xls\), or one with a password"),
    ("a.xlsx", b"\xd0\xcf\x11\xe0" * 9, r"an old spreadsheet \(\.xls\), or one with a password"),
    ("a.xlsx", zipped(), "no Excel workbook: no part '_rels/.rels'"),
    ("a.xlsx", b"a,y\n1,x\n", "no Excel workbook: File is not a zip file"),
    ("a.csv", b"PAR1" * 9, "a Parquet file: push it with --format parquet"),
    ("a.parquet", b"a,y\n1,x\n", "no Parquet file, or one that is cut off"),
    ("a.parquet", zipped(), "an archive: unpack it"),
    ("a.csv", b"SQLite format 3\0" * 9, "an SQLite file: export a table of it as CSV"),
    ("a.txt", b"%PDF-1.7\n", "a PDF document"),
    ("a.csv.gz", gzip.compress(gzip.compress(b"a,y\n1,x\n")), "a NUL character|no UTF-8|not"),
    *((f"a.{kind}", b"", "the source is empty")
      for kind in ("csv", "jsonl", "libsvm", "arff", "xlsx", "parquet", "csv.gz")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "message"), REFUSED, ids=[f"{each[0]}: {each[2][:20]}" for each in REFUSED]
)
def test_a_file_of_another_kind_is_refused_by_what_it_is(tmp_path, name, content, message):
    if message.startswith("no Excel"):
        package("openpyxl", "pip install 'online-svm[excel]'")
    if message.startswith("no Parquet"):
        package("pyarrow", "pip install 'online-svm[archive]'")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadSource, match=rf"{name}(, line 1, row 1)?: ({message})") as refused:
        list(rows(str(tmp_path / name), Reading()))
    assert str(refused.value).isprintable()


def test_a_pipe_a_device_and_a_directory_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    for name, message in [
        (tmp_path / "pipe.csv", "a pipe or a device: push it as standard input"),
        ("/dev/zero", "a pipe or a device: push it as standard input"),
        (tmp_path / "folder.csv", "a directory; name a file in it"),
    ]:
        with pytest.raises(BadSource, match=message):
            rows(str(name), Reading())


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("a,y\n1,x\n")

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", denied)
    with pytest.raises(BadSource, match=r"a\.csv: cannot be read: Permission denied"):
        list(rows(str(tmp_path / "a.csv"), Reading()))


TEXTS = {
    "a.csv": "a,y\n" + "1,x\n" * 5000, "a.jsonl": '{"a": 1, "y": "x"}\n' * 5000,
    "a.libsvm": "x 1:1\n" * 5000,
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("change", ["appended", "rewritten", "cut"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, name, change):
    path = tmp_path / name
    path.write_text(TEXTS[name])
    found = rows(str(path), Reading(features=1))
    next(found)
    with path.open("r+") as file:
        if change == "cut":
            file.truncate(10_000)
        else:
            file.seek(0, 0 if change == "rewritten" else 2)
            file.write("no such line\n")
    with pytest.raises(BadSource, match=rf"{name}: it changed while it was read: push a copy"):
        list(found)


def test_a_file_that_is_replaced_as_a_whole_is_read_to_its_end(tmp_path):
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text(TEXTS["a.csv"])
    other.write_text("a,y\n2,z\n")
    found = rows(str(path), Reading())
    next(found)
    other.replace(path)
    assert len(list(found)) == 4999


def test_a_parquet_file_with_any_byte_changed_is_read_or_refused(tmp_path):
    package("pyarrow", "pip install 'online-svm[archive]'")
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, whole = tmp_path / "b.parquet", tmp_path / "a.parquet"
    table = pa.table({"a": [1.5, None] * 20, "b": ["u", "v"] * 20, "y": ["x", "z"] * 20})
    pq.write_table(table, whole)
    data = whole.read_bytes()
    for at in range(0, len(data), 2):
        for changed in (data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :], data[:at]):
            path.write_bytes(changed)
            try:
                list(rows(str(path), Reading()))
            except BadSource as error:
                refused = str(error)
            else:
                continue
            assert refused.isprintable()
            assert len(refused) < 600


def test_a_parquet_file_of_no_rows_is_an_empty_table(tmp_path):
    package("pyarrow", installed_by="pip install 'online-svm[archive]'")
    path = tmp_path / "a.parquet"
    pd.DataFrame({"q": pd.Series([], dtype=float), "y": pd.Series([], dtype=str)}).to_parquet(path)
    assert list(rows(str(path), Reading())) == []
