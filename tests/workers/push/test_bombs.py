"""Small files that ask for much: each is refused in one line, within 500 MB and 10 s."""

import gzip
import sys
import time
import zipfile
import zlib

import numpy as np
import pytest
from processes import alone, peak_memory
from system_tools import package

from workers.push.sources import BadSource, Reading, rows

MAX_BYTES, MAX_SECONDS = 500 << 20, 10.0

pytestmark = [
    pytest.mark.slow, pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc"),
]  # fmt: skip


def cost(path, reading):
    """Return what a file is refused with, the peak memory in bytes, and the processor time."""
    refused = None
    try:
        for _ in rows(path, reading):
            pass
    except BadSource as error:
        refused = str(error)
    return refused, peak_memory(), time.process_time()


def refusal(path, **reading):
    """Return the line that a file is refused with, after checking what that cost."""
    assert path.stat().st_size < 4 << 20
    refused, peak, seconds = alone(cost, str(path), Reading(**reading))
    assert refused is not None
    assert refused.isprintable()
    assert peak < MAX_BYTES
    assert seconds < MAX_SECONDS
    return refused


BLOCK = 1 << 20


def repeated(unit, size):
    """Yield about `size` bytes of a repeated text, a block at a time."""
    block = unit * (BLOCK // len(unit))
    for _ in range(size // BLOCK):
        yield block


def workbook(path, sheet=(), texts=(), book=None, styles=()):
    """Write a workbook whose parts are pieces of bytes."""
    link = "<Relationship Id='{0}' Type='t/{1}' Target='{2}'/>".format
    links = link("r", "worksheet", "s.xml") + link("s", "sharedStrings", "t.xml")
    sheets = b"<workbook><sheets><sheet name='Data' id='r'/></sheets></workbook>"
    parts = {
        "_rels/.rels": [f"<a>{link('b', 'officeDocument', 'xl/b.xml')}</a>".encode()],
        "xl/_rels/b.xml.rels": [f"<a>{links}{link('y', 'styles', 'y.xml')}</a>".encode()],
        "xl/b.xml": [sheets] if book is None else book,
        "xl/s.xml": [b"<worksheet><sheetData>", *sheet, b"</sheetData></worksheet>"],
        "xl/t.xml": [b"<sst>", *texts, b"</sst>"],
        "xl/y.xml": [b"<styleSheet>", *styles, b"</styleSheet>"],
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, pieces in parts.items():
            with archive.open(name, "w", force_zip64=True) as part:
                for piece in pieces:
                    part.write(piece)
    return path


HEAD = (
    b"<row><c t='str'><v>a</v></c><c t='str'><v>y</v></c></row>"
    b"<row><c><v>1</v></c><c t='str'><v>x</v></c></row>"
)
SIZE = 1 << 28
SHEETS = {
    "a far row": {"sheet": [HEAD, b"<row r='999999999999'><c><v>1</v></c></row>"]},
    "blanks": {"sheet": repeated(b" ", SIZE)},
    "empty rows": {"sheet": repeated(b"<row/>", SIZE)},
    "elements below the bound of bytes": {"sheet": repeated(b"<x/>", 30 << 20)},
    "cells of a row": {"sheet": [HEAD, b"<row>", *repeated(b"<c/>", 30 << 20)]},
    "a deep sheet": {"sheet": repeated(b"<a>", 30 << 20)},
    "one long text": {"sheet": [HEAD, b"<row><c t='str'><v>", *repeated(b"a", 30 << 20)]},
    "one long name": {"sheet": [b"<", *repeated(b"a", 30 << 20)]},
    "a shared text in each row": {
        "texts": [b"<si><t>", b"a" * 100_000, b"</t></si>"],
        "sheet": [HEAD, *repeated(b"<row><c t='s'><v>0</v></c><c><v>1</v></c></row>", 20 << 20)],
    },
    "long shared texts": {"texts": repeated(b"<si><t>" + b"a" * 4000 + b"</t></si>", SIZE)},
    "empty shared texts": {"texts": repeated(b"<si/>", 30 << 20), "sheet": [HEAD]},
    "cell formats": {"styles": [b"<cellXfs>", *repeated(b"<xf/>", SIZE)]},
    "sheets": {"book": [b"<workbook>", *repeated(b"<sheet name='a' id='r'/>", SIZE)]},
    "entities": {"book": [
        b"<!DOCTYPE a [<!ENTITY b0 'b'>",
        *(b"<!ENTITY b%d '%s'>" % (i + 1, b"&b%d;" % i * 10) for i in range(12)),
        b"]><workbook>&b12;</workbook>",
    ]},
}  # fmt: skip


@pytest.mark.parametrize("parts", SHEETS.values(), ids=SHEETS)
def test_a_workbook_that_unpacks_to_much_is_refused(tmp_path, parts):
    package("openpyxl", "pip install 'online-svm[excel]'")
    assert "a.xlsx: " in refusal(workbook(tmp_path / "a.xlsx", **parts))


def packed(path, pieces):
    """Write a gzip file, which may be far larger once it is unpacked."""
    parts = zlib.compressobj(9, wbits=31)
    path.write_bytes(b"".join([*map(parts.compress, pieces), parts.flush()]))
    return path


GZIPPED = {"rows": b"1,x\n", "blank lines": b"\n", "one line": b"1", "NUL": b"\0"}


@pytest.mark.parametrize("unit", GZIPPED.values(), ids=GZIPPED)
@pytest.mark.parametrize("format_", ["csv", "jsonl", "libsvm"])
def test_a_gzip_file_that_unpacks_to_much_is_refused_before_its_first_row(tmp_path, unit, format_):
    path = packed(tmp_path / "a.gz", [b"a,y\n", *repeated(unit, SIZE)])
    assert "unpacks to more than 50 times its size" in refusal(path, format=format_)


def test_a_gzip_file_of_many_parts_is_bounded_as_a_whole(tmp_path):
    part = gzip.compress(b"1,x\n" * (8 << 18))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,y\n") + part * 200)
    assert "unpacks to more than 50 times its size" in refusal(tmp_path / "a.csv.gz")


def in_each_row(pa, text, count):
    """A column of one text, which is stored once."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([text]))


PARQUET = {
    "a long text in each row": lambda pa: (
        pa.table({"a": in_each_row(pa, "a" * (80 << 20), 1000), "y": ["x"] * 1000}), {}
    ),
    "a text of 8 MB in each row": lambda pa: (
        pa.table({"a": in_each_row(pa, "a" * (8 << 20), 1000), "y": ["x"] * 1000}), {}
    ),
    "a text of 100 KB in each row": lambda pa: (
        pa.table({"a": in_each_row(pa, "a" * 100_000, 200_000), "y": ["x"] * 200_000}), {}
    ),
    "texts of 10 KB in many columns": lambda pa: (
        pa.table({f"a{i}": in_each_row(pa, "a" * 10_000, 1000) for i in range(200)}), {}
    ),
    "pages of long texts": lambda pa: (
        pa.table({"a": ["a" * (8 << 20)] * 20, "y": ["x"] * 20}), {"use_dictionary": False}
    ),
    "many equal rows": lambda pa: (
        pa.table({"a": pa.array(np.ones(5_000_000)), "y": pa.array(np.ones(5_000_000, bool))}), {}
    ),
    "texts by delta": lambda pa: (
        pa.table({"a": ["a" * (1 << 17)] * 1000, "y": ["x"] * 1000}),
        {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY", "y": "PLAIN"}},
    ),
    "gaps": lambda pa: (pa.table({"a": pa.nulls(5_000_000, pa.int64())}), {}),
    "lists": lambda pa: (pa.table({"a": [[1] * 1_000_000], "y": ["x"]}), {}),
}  # fmt: skip


def write_parquet(path, name):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table, options = PARQUET[name](pa)
    pq.write_table(table, path, compression="zstd", **options)


@pytest.mark.parametrize("name", PARQUET)
def test_a_parquet_file_that_unpacks_to_much_is_refused(tmp_path, name):
    package("pyarrow", "pip install 'online-svm[archive]'")
    alone(write_parquet, tmp_path / "a.parquet", name)
    assert "a.parquet: " in refusal(tmp_path / "a.parquet")


def varint(value):
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def footer(path, schema, groups=b"\x19\x0c"):
    """Write a Parquet file of metadata alone: version, schema, no rows, row groups."""
    data = b"\x15\x02" + schema + b"\x16\x00" + groups + b"\x00"
    path.write_bytes(b"PAR1" + data + len(data).to_bytes(4, "little") + b"PAR1")
    return path


ROOT = b"\x48\x01a\x15\x02\x00"  # name a, one child


def test_a_footer_that_asks_for_much_is_refused(tmp_path):
    package("pyarrow", "pip install 'online-svm[archive]'")
    path, many = tmp_path / "a.parquet", 1_000_000
    deep = b"\x19\xfc" + varint(many // 2) + ROOT * (many // 2)
    assert "columns within one another" in refusal(footer(path, deep))
    leaf = b"\x48\x00\x00"
    assert "its footer" in refusal(footer(path, b"\x19\xfc" + varint(2**40) + leaf))
    wide = b"\x19\xfc" + varint(many) + leaf * many
    assert "columns" in refusal(footer(path, wide))
    chunks = b"\x19\xfc" + varint(many) + b"\x26\x00\x00" * many
    groups = b"\x19\x1c" + chunks + b"\x16\x00\x16\x00\x00"
    assert "damaged Parquet file" in refusal(footer(path, b"\x19\x2c" + ROOT + leaf, groups))
