"""TOML that is deep, large or no text is refused in one line, whoever reads it."""

import sys
import time

import pytest
from processes import alone, peak_memory

from workers.config.files import read_toml
from workers.config.settings import FeedSettings, load, origins
from workers.errors import BadConfiguration
from workers.gateway.tokens import grants
from workers.offline.backtest.configurations import read_sections

READERS = [
    lambda path: load({}, path), lambda path: FeedSettings({}, path),
    lambda path: origins({}, path), grants, read_sections,
]  # fmt: skip

BAD = {
    "deep lists": (b"a = " + b"[" * 100_000, "nested too deeply"),
    "deep objects": (b"a = " + b"{a=" * 100_000, "nested too deeply"),
    "a deep key": (b"a." * 100_000 + b"a = 1", "a key of many parts"),
    "a deep quoted key": (b'["a".' + b'"a".' * 100_000 + b"a]", "a key of many parts"),
    "many lines below a deep key": (
        b"[" + b"a." * 100_000 + b"a]\n" + b"b.c = 1\n" * 90_000, "a key of many parts"
    ),
    "a long number": (b"a = " + b"9" * 5000, "not TOML"),
    "a large file": (b"# " + b"a" * (1 << 24), r"more than 1,048,576 bytes"),
    "no text": (b"\xff\xfe\0", "not TOML"),
    "no key": (b"a", "not TOML"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD)
def test_bad_toml_is_refused_by_each_reader_in_one_line(tmp_path, content, said):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    for read in READERS:
        with pytest.raises(BadConfiguration, match=rf"a\.toml: .*{said}") as refused:
            read(path)
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 500


def cost(path):
    """Return the processor time and the peak memory of a refusal."""
    with pytest.raises(BadConfiguration):
        read_toml(path)
    return time.process_time(), peak_memory()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("content", [content for content, _ in BAD.values()], ids=BAD)
def test_a_refusal_takes_little_time_and_memory(tmp_path, content):
    (tmp_path / "a.toml").write_bytes(content)
    seconds, peak = alone(cost, tmp_path / "a.toml")
    assert seconds < 10
    assert peak < 500 << 20
