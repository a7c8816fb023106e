"""`status`: show the status of one feed, or of all."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from orjson import dumps
from typer import Argument

from workers.cli.common import Json, RedisOptions, note, opt
from workers.cli.fleet import AUTO, Address, print_fleet
from workers.errors import (
    AccessDenied,
    BadConfiguration,
    EmbeddedNotRunning,
    InvalidFeedName,
    StateLost,
)
from workers.feed.position import END, LAST_ID
from workers.text import counted, magnitude, printable, printable_json, share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workers.reading.facts import Fact
    from workers.reading.lag import ConsumerGroup, MemoryUse, PublishedStatus
    from workers.reading.status import FeedStatus


_MIN_SHOWN_BYTES = 1_000_000  # size of the waiting entries from which it is shown
_WIDTH = 400  # columns if the output is not a terminal: more than the longest names need


def status(
    feed: Annotated[str | None, Argument(help="Name of the feed; default all.")] = None,
    *,
    redis: RedisOptions,
    json: Json = False,
    check: Annotated[
        bool, opt("--check", "End with exit code 1 where a feed has no worker, and name the feed.")
    ] = False,
    fleet: Annotated[
        str | None,
        opt("NAME", "Show instead where each shard of this fleet runs, and what its feeds do."),
    ] = None,
    address: Address = AUTO,
) -> None:
    """Show the status of a feed: answered and waiting entries, its worker, its validity.

    The verdict comes first. Without a name, show a table with a line for each feed.
    """
    if fleet is not None:
        if feed or check:
            raise BadConfiguration("--fleet shows shards: leave out FEED and --check")
        print_fleet(fleet, address, redis, json)
        return
    try:
        url = redis.url()
    except EmbeddedNotRunning as error:
        if feed or check:
            raise
        # Without a server there are no feeds, which is no error.
        print(f"no feeds: {error}", file=sys.stderr if json else sys.stdout)
        return
    from workers.reading.verdict import printed

    names = [feed] if feed else _names(url)
    statuses = _statuses(names, url, is_named=bool(feed))
    if json:
        for status in statuses:
            print(printable_json(dumps(printed(status))))
    elif feed:
        print(describe(statuses[0]))
    elif statuses:
        _print_table(statuses)
    elif not names:
        print("no feeds yet: online-svm push FEED SOURCE, or online-svm worker FEED, begins one")
    if check:
        _check(names, statuses)


def _names(url: str) -> list[str]:
    from workers.broker.store import Store
    from workers.reading.registry import listed

    with Store(url, "any") as store:
        names, others = listed(store)
    if others:
        first = printable(others[0][:40].decode(errors="backslashreplace"))
        note(f"skipped in the list of feeds: {counted(len(others), 'name')} no feed has: {first}")
    return names


def _statuses(names: list[str], url: str, is_named: bool) -> "list[FeedStatus]":
    """Return the status of each feed; without a name given, print errors and continue."""
    from workers.broker.store import Store
    from workers.reading.registry import NoSuchFeed
    from workers.reading.status import read_status

    found = []
    for name in names:
        try:
            with Store(url, name) as store:
                found.append(read_status(store))
        except (NoSuchFeed, AccessDenied, BadConfiguration, InvalidFeedName, StateLost) as error:
            if is_named:
                raise
            note(f"{name}: {error}")  # its keys are gone, damaged or not permitted
    return found


def _check(names: list[str], statuses: "list[FeedStatus]") -> None:
    """Exit with 1 unless every feed has a worker."""
    idle = [status.feed for status in statuses if status.holder is None]
    for name in idle:
        note(f"{name}: no worker")
    if idle or len(statuses) < len(names):
        raise typer.Exit(1)


def describe(found: "FeedStatus") -> str:
    """Return a status as lines of text."""
    from workers.reading.facts import facts
    from workers.reading.verdict import verdict

    or_more = " or more" if found.waiting_is_at_least else ""
    nobody = "none holds the lease, so nothing is answered"
    holder = nobody if found.holder is None else found.holder
    snapshots = " and ".join(f"{n:,}" for n in found.snapshots)
    labels = found.lag.labels
    sent = 0 if labels is None else labels.sent
    counts = (sent, "label"), (found.duplicates, "duplicate")
    among = " and ".join(counted(count, noun) for count, noun in counts if count)
    others = f" ({among} among them)" if among else ""
    lines = [
        ("answered", f"{found.seq:,} entries{others}, {found.n:,} learned, up to {found.cursor}"),
        ("waiting", f"{found.waiting:,}{or_more}{_of_bytes(found.waiting_bytes)}"),
        ("kept", _kept(found)),
        ("in Redis", _stored(found.stored)),
        *[("read by", _consumer(group)) for group in found.consumers],
        *_published(found.published),
        ("worker", f"{holder} ({found.epoch} so far)"),
        ("snapshots", f"at n = {snapshots}" if snapshots else "none yet"),
        *_memory(found.memory),
        ("digest", f"{found.digest[:16]}, which stands for every byte of all answers"),
    ]
    if found.cursor == LAST_ID.decode():
        lines.append(("ended", END))
    kinds = [("kind", kind.get("words", "")) for kind in found.kinds]
    lines = [*kinds, *lines]
    judged = verdict(found)
    verdict_and_facts = [
        ("verdict", f"{judged.sentence}."),
        ("", judged.advice),
        *fact_lines(facts(found)),
    ]
    lines = [*verdict_and_facts, *lines]
    shown = [f"  {name:<9}  {text}" for name, text in lines if name or text]
    return "\n".join(map(printable, [f"feed {found.feed}", *shown]))


def fact_lines(found: "Sequence[Fact]") -> list[tuple[str, str]]:
    """Return facts as lines, each after its name; of facts of one name the first alone has it."""
    lines, before = [], ""
    for fact in found:
        lines.append(("" if fact.name == before else fact.name, fact.sentence))
        before = fact.name
    return lines


def _print_table(found: "list[FeedStatus]") -> None:
    """Print a summary, and a row for each feed, the worst first.

    Verdicts and names are shortened only on a narrow terminal.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from workers.reading.verdict import LEVELS, summary, verdict

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("verdict", "feed"):
        table.add_column(name)  # without no_wrap, so that rich narrows it; its cells do not wrap
    for name in ("answered", "waiting", "rejected"):
        table.add_column(name, no_wrap=True, justify="right")
    judged = [(verdict(status), status) for status in found]
    for each, status in sorted(judged, key=lambda pair: LEVELS.index(pair[0].level)):
        waiting = f"{status.waiting:,}" + "+" * status.waiting_is_at_least
        counts = (f"{status.seq:,}", waiting, f"{status.dlq:,}")
        cells = (printable(each.sentence), status.feed, *counts)
        first, *others = (Text(cell, no_wrap=True, overflow="ellipsis") for cell in cells)
        first.stylize(_STYLES[each.level])
        table.add_row(first, *others)
    console = Console()
    console = console if console.is_terminal else Console(width=_WIDTH)
    console.print(summary([each for each, _ in judged]), highlight=False)
    console.print(table)


_STYLES = {"bad": "bold red", "care": "yellow", "wait": "dim", "well": "green"}


def _memory(memory: "Mapping[str, Any]") -> list[tuple[str, str]]:
    """Return the rows of the memory, and what its trees weigh in the answers."""
    rows, size, bound = (memory.get(name) for name in ("rows", "bytes", "bound"))
    if not isinstance(rows, int) or not isinstance(size, int) or not isinstance(bound, int):
        return []
    fitted, weights = memory.get("fitted_at"), memory.get("weights")
    trees = "no trees yet"
    if isinstance(fitted, int) and fitted and isinstance(weights, dict):
        part = share(1.0 - float(weights.get("present", 1.0)))
        trees = f"its trees, of the first {fitted:,}, are {part} of an answer"
    return [("memory", f"{rows:,} of {bound:,} examples, {magnitude(size)}; {trees}")]


def _kept(found: "FeedStatus") -> str:
    alarms = f", {counted(found.alarms, 'entry', 'entries')} with alarms" if found.alarms else ""
    return f"{found.out:,} answers, {found.met:,} reports, {found.dlq:,} rejected{alarms}"


def _of_bytes(size: int) -> str:
    """Return the size of the waiting entries and the high-water mark of a push; "" if small."""
    if size < _MIN_SHOWN_BYTES:
        return ""
    from workers.cli.push import HIGH_WATER_BYTES

    return f", {magnitude(size)}; push waits at {magnitude(HIGH_WATER_BYTES)} unless told otherwise"


def _stored(found: "MemoryUse") -> str:
    known = {kind: size for kind, size in found.bytes.items() if size}
    if not known:
        denied = None in found.bytes.values()
        return "unknown: this user may not run MEMORY USAGE" if denied else "nothing"
    parts = []
    for kind, size in known.items():
        bound = found.bounds.get(kind)
        parts.append(f"{kind} {magnitude(size)}" + (f" (of {magnitude(bound)})" if bound else ""))
    return f"{magnitude(sum(known.values()))}: {', '.join(parts)}"


def _consumer(group: "ConsumerGroup") -> str:
    or_more = " or more" if group.behind_is_at_least else ""
    pending = f", {group.pending:,} not acknowledged" if group.pending else ""
    return f"{group.name}, up to {group.upto}, {group.behind:,}{or_more} behind{pending}"


def _published(found: "PublishedStatus | None") -> list[tuple[str, str]]:
    if found is None:
        return []
    age = "" if found.age is None else f", {found.age:,.0f} s ago"
    state = f"n = {found.n:,}, {found.behind:,} learned since{age}, {magnitude(found.size)}"
    return [("published", state)]
