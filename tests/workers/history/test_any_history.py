"""A feed, its archive and its erasures in any order: nothing is lost, repeated or left behind."""

import itertools
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path

import hypothesis.strategies as st
from archived_feed import answering, archive, entry, push, rows_of, stream
from erase_traces import Cut, CutStore
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from system_tools import package

package("pyarrow", "pip install 'online-svm[archive]'")

from workers import failpoints  # noqa: E402
from workers.admin.erase.erasure import erase  # noqa: E402
from workers.admin.erase.streams import erased_of  # noqa: E402
from workers.admin.verify import verify  # noqa: E402
from workers.failpoints import OF_ARCHIVE  # noqa: E402
from workers.feed.position import parse_id  # noqa: E402
from workers.feed.retention import DOWNSTREAM  # noqa: E402
from workers.history.archive.erasure import ErasableArchive  # noqa: E402
from workers.history.archive.identity import locked  # noqa: E402
from workers.history.archive.layout import feed_directory  # noqa: E402
from workers.history.archive.reader import Archive  # noqa: E402
from workers.history.archive.verification import verify_archive  # noqa: E402

SETTINGS = {"keep_input": True, "replay_budget": 40}
STREAMS = {"input": "input", "out": "answers", "met": "reports", "alarms": "alarms"}

_feeds = itertools.count(1)


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

    def __init__(self, url):
        super().__init__()
        self._held = ExitStack()
        self.url, self.feed = url, f"any-history-{next(_feeds)}"
        self.store = self._held.enter_context(CutStore(url, self.feed))
        self.root = Path(self._held.enter_context(tempfile.TemporaryDirectory()))
        self.pushed, self.erased, self.has_archive = 0, set(), False
        self.kept = {name: {} for name in STREAMS}

    @rule(count=st.integers(1, 30))
    def answer(self, count):
        with answering(self.url, self.feed, **SETTINGS) as (store, answer, _):
            push(store, self.pushed, self.pushed + count)
            answer()
        self.pushed += count
        for name in STREAMS:
            self.kept[name] |= dict(stream(self.store, name))

    @precondition(lambda self: self.pushed)
    @rule(cut=st.none() | st.tuples(st.sampled_from(OF_ARCHIVE), st.integers(1, 6)))
    def archive(self, cut):
        self.has_archive = True
        if cut is not None:
            failpoints.chosen = CutPoint(*cut)
        try:
            archive(self.store, self.root)
        except Cut:
            return
        finally:
            failpoints.chosen = None
        self.check_archive()

    @precondition(lambda self: self.has_archive)
    @rule()
    def trim(self):
        """Give up what was acknowledged, as a worker does that waits for its archive."""
        keys, older = self.store.keys, self.store.state().previous
        groups = self.store.call("XINFO", "GROUPS", keys.out)
        for group in (dict(zip(flat[::2], flat[1::2], strict=True)) for flat in groups):
            if group[b"name"] == DOWNSTREAM.encode():
                acknowledged = group[b"last-delivered-id"]
                self.store.call("XTRIM", keys.out, "MINID", acknowledged)
                if older is not None:
                    needed = min(acknowledged, older.cursor, key=parse_id)
                    self.store.call("XTRIM", keys.input, "MINID", needed)

    @precondition(lambda self: self.pushed > len(self.erased))
    @rule(data=st.data(), cut=st.none() | st.integers(1, 60))
    def erase(self, data, cut):
        one = data.draw(st.sampled_from(sorted({*range(self.pushed)} - self.erased)))
        if not self.is_known(one):
            return
        self.store.left = cut or 10**9
        try:
            self.erase_now(one)
        except Cut:
            self.store.left = 10**9
            assert verify(self.store).is_identical  # whatever was done, the feed can go on
            if erased_of(self.store).is_unfinished or self.is_known(one):
                self.erase_now(one)
        self.store.left = 10**9
        self.erased.add(one)
        assert not erased_of(self.store).is_unfinished
        at = entry(one)[0].encode()
        for name in ("input", "out", "dlq"):
            assert at not in dict(stream(self.store, name))

    def is_known(self, one):
        """Return whether an entry is still in Redis or in the archive."""
        at = entry(one)[0]
        archived = self.has_archive and rows_of(self.root, self.feed, "answers")
        return at.encode() in dict(stream(self.store, "out")) or (
            bool(archived) and at in {row["entry"] for row in archived}
        )

    def erase_now(self, one):
        directory = feed_directory(self.root, self.feed)
        if not self.has_archive:
            erase(self.store, f"id-{one}")
            return
        with locked(directory):
            erase(self.store, f"id-{one}", ErasableArchive(Archive(directory)))

    @precondition(lambda self: self.pushed)
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
            self.archive_all()
        self._held.close()

    def archive_all(self):
        self.has_archive = True
        archive(self.store, self.root)
        assert not list(self.root.rglob("*.tmp"))
        self.check_archive()


def test_an_archive_has_all_that_was_ever_answered_but_what_was_erased(embedded_url):
    run_state_machine_as_test(
        lambda: AnyHistory(embedded_url),
        settings=settings(
            max_examples=12,
            stateful_step_count=10,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
