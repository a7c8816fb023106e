"""Sources of up to 64 MiB, read under a limit on memory: refused or read, and no more.

Each is read in a process of its own, whose address space is limited: what takes too much memory
ends that process with a traceback, which no answer of ours looks like.
"""

import gzip
import os
import random
import resource
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from processes import Process

# Each takes a minute at most, and several times that beside other work.
pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(900)]
MIB = 1 << 20
LIMIT = 3_000 * MIB
"""Bytes of address space: OpenBLAS takes most of it."""

SEED = 11

# Of the rows at most so many are read: each takes its time, and no more memory than the first.
SCRIPT = """
import sys
from itertools import islice
from workers.push.sources import BadSource, Reading, rows
for line in sys.stdin:
    format, path = line.split()
    told, source = [], path
    if path.endswith(".in"):  # standard input
        source, kept = "-", sys.stdin
    for header in (True, False):
        try:
            if source == "-":
                sys.stdin = open(path, encoding="utf-8", newline="")
            read = rows(source, Reading(format, header=header))
            told.append(str(sum(1 for row in islice(read, 20_000))))
        except BadSource as error:
            assert 0 < len(str(error)) < 1000 and "\\n" not in str(error), str(error)[:2000]
            told.append("refused")
        finally:
            if source == "-":
                sys.stdin.close()
                sys.stdin = kept
    print(*told, flush=True)
"""


class Child:
    """The script under the limit, which is asked line by line."""

    def __init__(self):
        self._process = Process(
            [sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, preexec_fn=limited,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def ask(self, line):
        """Return the words of its answer; it must have one."""
        with suppress(BrokenPipeError):  # it ended; why, it said
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        told = self._process.stdout.readline().split()
        if not told:
            raise AssertionError(f"{line}: {self._process.communicate()[1][-2000:]}")
        return told


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def repeated(unit, size, before=b"", after=b""):
    return before + unit * ((size - len(before) - len(after)) // len(unit)) + after


def names(size, choose):
    """An object of as many names as fit, in no order."""
    found = [b'"n%06d":1' % i for i in range(size // 12)]
    return b"{" + b",".join(choose.sample(found, len(found))) + b"}"


def sources(size, choose):
    """Yield format and content of sources, one line of about `size` bytes or very many lines."""
    line = repeated(b"1,", size, b"", b"a")
    yield "csv", b"h\n" + line + b"\n"
    yield "csv", line + b"\n" + line + b"\n"
    yield "csv", repeated(b"1,2,a\n", size, b"x,z,y\n")
    yield "csv", repeated(b'"', size, b"x,y\n")
    yield "jsonl", repeated(b"1,", size, b'{"x":[', b'0],"y":"a"}') + b"\n"
    yield "jsonl", names(size, choose) + b"\n"
    yield "jsonl", b"[" * size
    yield "jsonl", repeated(b'{"x":[1,2],"y":"a"}\n', size)
    wide = b" ".join(b"%d:1" % i for i in range(1, size // 9))
    yield "libsvm", b"1 " + wide + b"\n"
    yield "libsvm", b"1 1:1\n" + b"-1 %d:1\n" % (10 * size)
    # The largest index is the width, so all of the rows are held.
    yield "libsvm", repeated(b"1 1:2 3:4\n", min(size, 2 * MIB))
    yield "arff", b"@relation r\n" + repeated(b"@attribute a real\n", size) + b"@data\n1\n"
    attributes = b"".join(b"@attribute n%06d real\n" % i for i in range(size // 23))
    yield "arff", b"@relation r\n" + attributes + b"@data\n1\n"
    yield "arff", b"@relation r\n@attribute a real\n@attribute y {a,b}\n@data\n" + line + b"\n"
    yield "arff", repeated(b"1,a\n", size, b"@relation r\n@attribute a real\n"
                           b"@attribute y {a,b}\n@data\n")  # fmt: skip
    for format_ in ("csv", "jsonl", "libsvm", "arff"):
        yield format_, choose.randbytes(min(size, MIB)) * max(1, size // MIB)


@pytest.mark.parametrize("name", ["source", "source.gz", "source.in"])
@pytest.mark.parametrize("size", [1 << 10, MIB, 8 * MIB, 64 * MIB])
def test_a_source_of_any_size_is_read_or_refused_within_the_memory(tmp_path, size, name):
    choose, path, longest = random.Random(SEED), tmp_path / name, 0.0
    with Child() as child:
        for format_, content in sources(size, choose):
            path.write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
            began = time.monotonic()
            told = child.ask(f"{format_} {path}")
            assert len(told) == 2
            longest = max(longest, time.monotonic() - began)
    print(f"\nfuzz, seed {SEED}: {name} of {size:,} bytes, slowest {longest:.1f} s")


@pytest.mark.parametrize("format_", ["csv", "jsonl", "libsvm", "arff"])
def test_a_packed_source_that_is_cut_or_damaged_is_refused(tmp_path, format_):
    choose, path = random.Random(SEED), tmp_path / "source.gz"
    with Child() as child:
        for _format, content in sources(1 << 14, choose):
            packed = gzip.compress(content)
            path.write_bytes(packed[: choose.randrange(len(packed))])
            assert child.ask(f"{format_} {path}") == ["refused", "refused"]
            damaged = bytearray(packed)
            damaged[choose.randrange(len(packed))] ^= 1 << choose.randrange(8)
            path.write_bytes(damaged)  # some bytes of the head mean nothing
            assert len(child.ask(f"{format_} {path}")) == 2
