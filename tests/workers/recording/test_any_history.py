"""A feed, its file and its erasures in any order: nothing is lost, repeated or left behind."""

import itertools
import json
import tempfile
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from recorded_feed import Cut, CutStore, answering, entry, push, rows_of, stream

from workers.admin.erased_streams import erased_of
from workers.admin.verify import verify
from workers.broker import failpoints
from workers.broker.failpoints import OF_RECORDING
from workers.errors import BadConfiguration
from workers.feed.position import parse_id
from workers.feed.retention import DOWNSTREAM
from workers.recording.backup import backup
from workers.recording.erasure import erase
from workers.recording.reader import Recording
from workers.recording.recorder import BackupOptions
from workers.recording.verification import verify_file

SETTINGS = {"keep_input": True, "replay_budget": 40}
STREAMS = ("input", "out", "met", "alarms")
OF_BACKUP, OF_ERASURE = OF_RECORDING[:4], OF_RECORDING[4:]
GROUPED = BackupOptions(group=DOWNSTREAM)

_feeds = itertools.count(1)

counts = st.integers(1, 30)


class CutPoint:
    """A fail point that ends a command at one of its passages."""

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
        self.file = self.root / "feed.sqlite"
        self.pushed, self.erased = 0, set()
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

    @property
    def has_file(self):
        return self.file.exists() and bool(rows_of(self.file, "facts"))

    @rule()
    def backup(self):
        backup(self.store, self.file, GROUPED)
        if stream(self.store, "out"):  # the last answer may be erased
            assert self.acknowledged() == self.store.state().position.cursor
        self.check_file()

    @rule(count=counts, name=st.sampled_from(OF_BACKUP))
    def cut_backup(self, count, name):
        """Let a backup die while it writes new answers."""
        self.answer(count)
        self.cut_at(name, lambda: backup(self.store, self.file, GROUPED))

    def cut_at(self, name, do):
        failpoints.chosen = CutPoint(name, 1)
        try:
            do()
        except Cut:
            self.reached[name] += 1
        finally:
            failpoints.chosen = None

    def acknowledged(self):
        """Return the answer behind which the group of the file stands; None without a group."""
        for flat in self.store.call("XINFO", "GROUPS", self.store.keys.out):
            group = dict(zip(flat[::2], flat[1::2], strict=True))
            if group[b"name"] == DOWNSTREAM.encode():
                return group[b"last-delivered-id"]
        return None

    @precondition(lambda self: self.has_file)
    @rule()
    def trim(self):
        """Give up what was acknowledged, as a worker does that waits for its backup."""
        keys, older, behind = self.store.keys, self.store.state().previous, self.acknowledged()
        if behind is not None:
            self.store.call("XTRIM", keys.out, "MINID", behind)
        if behind is not None and older is not None:
            needed = min(behind, older.cursor, key=parse_id)
            self.store.call("XTRIM", keys.input, "MINID", needed)

    @precondition(lambda self: self.pushed > len(self.erased))
    @rule(data=st.data(), cut=st.integers(1, 60) | st.sampled_from([None, *OF_ERASURE]))
    def erase(self, data, cut):
        one = data.draw(st.sampled_from(sorted({*range(self.pushed)} - self.erased)))
        if not self.is_known(one):
            return
        at = entry(one)[0].encode()
        rejected = [each for each in stream(self.store, "dlq") if each[0] != at]
        if isinstance(cut, str):
            self.backup()
            self.cut_at(cut, lambda: self.erase_now(one))
        self.store.left = cut if isinstance(cut, int) else 10**9
        try:
            with suppress(BadConfiguration):  # the cut was at the very end
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
        """Return whether an entry is still in Redis or in the file."""
        recorded = {row["seq"] for row in rows_of(self.file, "answers")} if self.has_file else ()
        return entry(one)[0].encode() in dict(stream(self.store, "out")) or one in recorded

    def erase_now(self, one):
        found = erase(self.store, f"id-{one}", self.file if self.has_file else None)
        assert found.unlinked == 0  # the chain is whole, here or in the file

    @rule()
    def verify(self):
        assert verify(self.store).is_identical

    def left(self, name):
        """Return what was ever in a stream, without the entries that were erased."""
        gone = {entry(one)[0].encode() for one in self.erased}
        found = sorted(self.kept[name].items(), key=lambda item: parse_id(item[0]))
        return [e for e in found if name in ("met", "alarms") or e[0] not in gone]

    def check_file(self):
        """Compare the file with all that was ever answered, and recompute it."""
        with Recording.open(self.file) as found:
            for name in STREAMS:
                held = found.each(getattr(found.keys, name), b"0-0")
                assert [(at, list(fields)) for at, fields in held] == self.left(name)
            verified = verify_file(found)
        seqs = [json.loads(fields[1])["seq"] for _, fields in self.left("out")]
        assert seqs == [i for i in range(self.pushed) if i not in self.erased]
        assert (verified.is_identical, verified.unlinked) == (True, 0)
        assert verified.erased == len(self.erased)

    def teardown(self):
        if self.pushed:
            self.backup()
            assert list(self.root.iterdir()) == [self.file]
        self._held.close()


def test_a_file_has_all_that_was_ever_answered_but_what_was_erased(embedded_url):
    reached = Counter()
    run_state_machine_as_test(
        lambda: AnyHistory(embedded_url, reached),
        settings=settings(
            max_examples=40,
            stateful_step_count=12,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert set(reached) == {*OF_RECORDING, "erase"}, f"a cut was never made: {reached}"
