"""Entries and sources of up to 64 MiB, read under a limit on memory: refused or read, and no more.

Each is read in a process of its own, whose address space is limited: what takes too much memory
ends that process with a traceback, which no answer of ours looks like.
"""

import gzip
import os
import random
import resource
import subprocess
import sys

import pytest
from processes import Process

FACTOR = int(os.environ.get("FUZZ_FACTOR", "1"))
pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(180 * FACTOR)]
MIB = 1 << 20
LIMIT = 3_000 * MIB
"""Bytes of address space: numba and OpenBLAS take most of it."""

SIZES = [1 << 10, 100_000, MIB - 200, MIB + 100, 8 * MIB, 64 * MIB]
SEED = 11

ENTRIES = """
import sys
from online_svm.config import PredictorConfig
from online_svm.errors import REJECTION_CODES
from online_svm.stream.schema import FeatureSchema
from workers.config.settings import Limits
from workers.message.decode import decode
raw = sys.stdin.buffer.read()
for features in (None, 3):
    for name in (b"x", b"xb", b"y", b"id", b"p", raw):
        fields = [name, raw] if name != b"y" else [b"x", b"[1,2,3]", b"y", raw]
        schema = FeatureSchema(PredictorConfig(features=features))
        found = decode([(b"1-0", fields)], schema, Limits())
        codes = {error.code for error in found.rejected.values()}
        assert codes <= set(REJECTION_CODES), codes
        print(*codes or ["taken"])
"""

SOURCES = """
import sys
from workers.push.sources import BadSource, Reading, rows
path, format = sys.argv[1:]
for header in (True, False):
    count = 0
    try:
        for row in rows(path, Reading(format, header=header)):
            count += 1
        print(count, "rows")
    except BadSource as error:
        assert 0 < len(str(error)) < 1000 and "\\n" not in str(error), str(error)[:2000]
        print("refused:", str(error)[:100])
"""


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def run(script, *arguments, given=b""):
    """Return what a script printed under the limit; it must end well and soon."""
    process = Process(
        [sys.executable, "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, preexec_fn=limited,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    with process:
        told, wrong = process.communicate(given, timeout=60.0)
        assert process.returncode == 0, wrong.decode()[-2000:]
    return told.decode().splitlines()


def repeated(unit, size, before=b"", after=b""):
    return before + unit * ((size - len(before) - len(after)) // len(unit)) + after


def names(size, choose, order):
    """An object of as many names as fit, ascending, descending or in no order."""
    found = [b'"n%06d":1' % i for i in range(size // 12)]
    found = {"up": found, "down": found[::-1], "any": choose.sample(found, len(found))}[order]
    return b"{" + b",".join(found) + b"}"


def entries(size, choose):
    """Yield texts of about `size` bytes; the last ones have no pattern that a person chose."""
    yield repeated(b"[],", size, b"[", b"0]")
    yield repeated(b'{"":0},', size, b"[", b"0]")
    yield repeated(b"1e5,", size, b"[", b"0]")
    yield repeated(b"9", size, b"[", b"]")
    yield repeated(b"a", size, b'"', b'"')
    yield repeated(b'\\"', size, b'["', b'"]')
    yield repeated(b"\0", size)
    yield repeated("é".encode(), size)
    for order in ("up", "down", "any"):
        yield names(size, choose, order)
    pieces = [b"[", b"]", b"{", b"}", b'"', b",", b":", b"1", b"e", b"null", b"\\", b"\xff", b" "]
    yield b"".join(choose.choices(pieces, k=min(size, MIB)))[:size] * max(1, size // MIB)
    yield choose.randbytes(min(size, MIB)) * max(1, size // MIB)


@pytest.mark.parametrize("size", SIZES)
def test_an_entry_of_any_size_is_taken_or_rejected_within_the_memory(size):
    choose = random.Random(SEED)
    for raw in entries(size, choose):
        told = run(ENTRIES, given=raw)
        assert len(told) == 12
        if size > MIB:
            assert set(told) <= {"too_large", "unknown_field"}, told


def sources(size, choose):
    """Yield format and content of sources, one line of about `size` bytes or very many lines."""
    line = repeated(b"1,", size, b"", b"a")
    yield "csv", b"h\n" + line + b"\n"
    yield "csv", line + b"\n" + line + b"\n"
    yield "csv", repeated(b"1,2,a\n", size, b"x,z,y\n")
    yield "csv", repeated(b'"', size, b"x,y\n")
    yield "jsonl", repeated(b"1,", size, b'{"x":[', b'0],"y":"a"}') + b"\n"
    yield "jsonl", names(size, choose, "any") + b"\n"
    yield "jsonl", b"[" * size
    yield "jsonl", repeated(b'{"x":[1,2],"y":"a"}\n', size)
    wide = b" ".join(b"%d:1" % i for i in range(1, size // 9))
    yield "libsvm", b"1 " + wide + b"\n"
    yield "libsvm", b"1 1:1\n" + b"-1 %d:1\n" % (10 * size)
    yield "libsvm", repeated(b"1 1:2 3:4\n", size)
    head = b"@relation r\n" + repeated(b"@attribute a real\n", size) + b"@data\n1\n"
    yield "arff", head
    yield "arff", b"@relation r\n@attribute a real\n@attribute y {a,b}\n@data\n" + line + b"\n"
    yield "arff", repeated(b"1,a\n", size, b"@relation r\n@attribute a real\n"
                           b"@attribute y {a,b}\n@data\n")  # fmt: skip
    for format_ in ("csv", "jsonl", "libsvm", "arff"):
        yield format_, choose.randbytes(min(size, MIB)) * max(1, size // MIB)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("size", [1 << 10, MIB, 8 * MIB, 64 * MIB])
def test_a_source_of_any_size_is_read_or_refused_within_the_memory(tmp_path, size, is_packed):
    choose = random.Random(SEED)
    path = tmp_path / ("source.gz" if is_packed else "source")
    for format_, content in sources(size, choose):
        path.write_bytes(gzip.compress(content, 1) if is_packed else content)
        assert len(run(SOURCES, str(path), format_)) == 2


@pytest.mark.parametrize("format_", ["csv", "jsonl", "libsvm", "arff"])
def test_a_packed_source_that_is_cut_or_damaged_is_refused(tmp_path, format_):
    choose, path = random.Random(SEED), tmp_path / "source.gz"
    for _format, content in sources(1 << 14, choose):
        packed = bytearray(gzip.compress(content))
        packed[choose.randrange(len(packed))] ^= 1 << choose.randrange(8)
        path.write_bytes(packed[: choose.randrange(len(packed))])
        told = run(SOURCES, str(path), format_)
        assert len(told) == 2
