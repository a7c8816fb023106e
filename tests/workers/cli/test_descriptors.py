"""A process may run many commands one after the other: none leaves a file descriptor open."""

import gc
from pathlib import Path

import pytest

from workers.cli import app as cli
from workers.fast_imports import importing

DESCRIPTORS = Path("/proc/self/fd")

pytestmark = pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="needs /proc")


def test_a_command_leaves_no_descriptor_open(capsys):
    def run():
        with pytest.raises(SystemExit) as ended:
            cli.main(["check", "--help"])
        assert ended.value.code == 0

    run()
    gc.collect()  # what other tests left to the collector is closed now, not between the two looks
    before = len(list(DESCRIPTORS.iterdir()))
    for _ in range(5):
        run()
    assert len(list(DESCRIPTORS.iterdir())) == before


def test_a_block_that_imports_nothing_leaves_later_garbage_to_the_collector():
    frozen = gc.get_freeze_count()
    with importing():
        pass
    assert gc.get_freeze_count() == frozen
