"""A feed, its archive and its erasures in any order: nothing is lost, repeated or left behind."""

import itertools
import json
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import hypothesis.strategies as st
from archived_feed import Cut, CutStore, answering, archive, entry, push, rows_of, stream
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from system_tools import package

package("pyarrow", "pip install 'online-svm[archive]'")

from workers.admin.erased_streams import erased_of  # noqa: E402
from workers.admin.erasure import erase  # noqa: E402
from workers.admin.verify import verify  # noqa: E402
from workers.broker import failpoints  # noqa: E402
from workers.broker.failpoints import OF_ARCHIVE  # noqa: E402
from workers.feed.position import parse_id  # noqa: E402
from workers.feed.retention import DOWNSTREAM  # noqa: E402
from workers.offline.archive.erasure import ErasableArchive  # noqa: E402
from workers.offline.archive.layout import feed_directory, locked  # noqa: E402
from workers.offline.archive.reader import Archive  # noqa: E402
from workers.offline.archive.verification import verify_archive  # noqa: E402

SETTINGS = {"keep_input": True, "replay_budget": 40}
STREAMS = {"input": "input", "out": "answers", "met": "reports", "alarms": "alarms"}

_feeds = itertools.count(1)

counts = st.integers(1, 30)


class CutPoint:
    """A fail point that ends the archiver at one of its passages."""

    def __init__(self, name, nth):
        self._name, self._left = name, nth

    def reach(self, name):
        self._left -= name == self._name
        if not self._left:
            self._left = -1
            raise Cut


class AnyHistory(RuleBasedStateMachine):
    """A feed and what must be known of it: every entry of every stream, and who was erased."""

    def __init__(self, url, reached):
        super().__init__()
        self._held = ExitStack()
        self.reached = reached
        self.url, self.feed = url, f"any-history-{next(_feeds)}"
        self.store = self._held.enter_context(CutStore(url, self.feed))
        self.root = Path(self._held.enter_context(tempfile.TemporaryDirectory()))
        self.pushed, self.erased, self.has_archive = 0, set(), False
        self.kept = {name: {} for name in STREAMS}

    @initialize(count=counts)
    def begin(self, count):
        self.answer(count)

    @rule(count=counts)
    def answer(self, count):
        with answering(self.url, self.feed, **SETTINGS) as (store, answer, _):
            push(store, self.pushed, self.pushed + count)
            answer()
        self.pushed += count
        for name in STREAMS:
            self.kept[name] |= dict(stream(self.store, name))

    @rule()
    def archive(self):
        self.has_archive = True
        archive(self.store, self.root)
        assert self.acknowledged() == stream(self.store, "out")[-1][0]
        self.check_archive()

    @rule(count=counts, name=st.sampled_from(OF_ARCHIVE), nth=st.integers(1, 3))
    def cut_archive(self, count, name, nth):
        """Let the archiver die while it writes new answers."""
        self.answer(count)
        self.has_archive, failpoints.chosen = True, CutPoint(name, nth)
        try:
            archive(self.store, self.root)
        except Cut:
            self.reached[name] += 1
        finally:
            failpoints.chosen = None

    def acknowledged(self):
        """Return the answer behind which the archive's group stands; None without a group."""
        for flat in self.store.call("XINFO", "GROUPS", self.store.keys.out):
            group = dict(zip(flat[::2], flat[1::2], strict=True))
            if group[b"name"] == DOWNSTREAM.encode():
                return group[b"last-delivered-id"]
        return None

    @precondition(lambda self: self.has_archive)
    @rule()
    def trim(self):
        """Give up what was acknowledged, as a worker does that waits for its archive."""
        keys, older, behind = self.store.keys, self.store.state().previous, self.acknowledged()
        if behind is not None:
            self.store.call("XTRIM", keys.out, "MINID", behind)
        if behind is not None and older is not None:
            needed = min(behind, older.cursor, key=parse_id)
            self.store.call("XTRIM", keys.input, "MINID", needed)

    @precondition(lambda self: self.pushed > len(self.erased))
    @rule(data=st.data(), cut=st.none() | st.integers(1, 60))
    def erase(self, data, cut):
        one = data.draw(st.sampled_from(sorted({*range(self.pushed)} - self.erased)))
        if not self.is_known(one):
            return
        at = entry(one)[0].encode()
        rejected = [each for each in stream(self.store, "dlq") if each[0] != at]
        self.store.left = cut or 10**9
        try:
            self.erase_now(one)
        except Cut:
            self.store.left = 10**9
            self.reached["erase"] += 1
            assert verify(self.store).is_identical  # whatever was done, the feed can go on
            if erased_of(self.store).is_unfinished or self.is_known(one):
                self.erase_now(one)
        self.store.left = 10**9
        self.erased.add(one)
        assert not erased_of(self.store).is_unfinished
        for name in ("input", "out"):
            assert at not in dict(stream(self.store, name))
        assert stream(self.store, "dlq") == rejected

    def is_known(self, one):
        """Return whether an entry is still in Redis or in the archive."""
        at = entry(one)[0]
        archived = self.has_archive and rows_of(self.root, self.feed, "answers")
        return at.encode() in dict(stream(self.store, "out")) or (
            bool(archived) and at in {row["entry"] for row in archived}
        )

    def erase_now(self, one):
        directory = feed_directory(self.root, self.feed)
        if self.has_archive:
            with locked(directory):
                found = erase(self.store, f"id-{one}", ErasableArchive(Archive(directory)))
        else:
            found = erase(self.store, f"id-{one}")
        assert found.unlinked == 0  # the chain is whole, here or in the archive

    @rule()
    def verify(self):
        assert verify(self.store).is_identical

    def left(self, name):
        """Return what was ever in a stream, without the entries that were erased."""
        gone = {entry(one)[0].encode() for one in self.erased}
        found = sorted(self.kept[name].items(), key=lambda item: parse_id(item[0]))
        return [e for e in found if name in ("met", "alarms") or e[0] not in gone]

    def check_archive(self):
        """Compare the archive with all that was ever answered, and recompute it."""
        found = Archive(feed_directory(self.root, self.feed))
        for name, kind in STREAMS.items():
            pages = found.inputs() if kind == "input" else found.payloads(kind)
            assert [e for page in pages for e in page] == self.left(name)
        seqs = [json.loads(fields[1])["seq"] for _, fields in self.left("out")]
        assert seqs == [i for i in range(self.pushed) if i not in self.erased]
        verified = verify_archive(self.store, found)
        assert verified.is_identical
        assert verified.erased == len(self.erased)

    def teardown(self):
        if self.pushed:
            self.archive()
            assert not list(self.root.rglob("*.tmp"))
        self._held.close()


def test_an_archive_has_all_that_was_ever_answered_but_what_was_erased(embedded_url):
    reached = Counter()
    run_state_machine_as_test(
        lambda: AnyHistory(embedded_url, reached),
        settings=settings(
            max_examples=16,
            stateful_step_count=12,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert set(reached) == {*OF_ARCHIVE, "erase"}, f"a cut was never made: {reached}"
