"""`verify`: recompute the answers, and compare every byte; or repair state or answers."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from workers.cli.common import Json, RedisOptions, Source, opt, show_json
from workers.cli.source_options import PushedSourceOptions
from workers.errors import BadConfiguration, ReplayMismatch
from workers.text import counted, printable

if TYPE_CHECKING:
    from workers.admin.repair import Repaired
    from workers.admin.verify import Difference, Verification

SHOWN_DIFFERENCES = 3  # differences shown: the later ones usually follow from the first


def verify(
    source: Source,
    *,
    redis: RedisOptions,
    json: Json = False,
    input: Annotated[
        str | None,
        opt("SOURCE", "Compare the whole history with this source, read as push reads it."),
    ] = None,
    repair: Annotated[
        bool,
        opt(
            "--repair",
            "Where state and answers disagree, make them agree if a replay of the input "
            "proves them: a state that is behind moves to the end of the answers, missing answers "
            "are written.",
        ),
    ] = False,
    how: PushedSourceOptions,
) -> None:
    """Answer the kept input again and compare the bytes; exit code 5 if any differ.

    Of a file all answers since its first snapshot are recomputed, and those before are proved by
    the digest.

    --repair compares less, and writes: what it needs to let a worker begin again.
    """
    from workers.admin.verify import verify as recompute
    from workers.admin.verify import verify_history
    from workers.cli.progress import doing
    from workers.push.convention import stored_convention
    from workers.push.ingest import encoded
    from workers.push.sources import rows
    from workers.recording.file import is_recording
    from workers.recording.reader import Recording
    from workers.recording.verification import verify_file

    if repair and input is not None:
        raise BadConfiguration("--repair answers the input that Redis keeps: leave out --input")
    if is_recording(source):
        if repair or input is not None:
            raise BadConfiguration(f"{source} is a file: leave out --repair and --input")
        with Recording.open(Path(source)) as recording, doing("answering the input again"):
            found = verify_file(recording)
    elif repair:
        _repair(source, redis, json)
        return
    else:
        with redis.store(source) as store, doing("answering the input again"):
            if input is None:
                found = recompute(store)
            else:
                reading = replace(how.reading(), known=stored_convention(store))
                chosen, _ = how.chosen(rows(input, reading))
                found = verify_history(store, map(encoded, chosen))
    if json:
        show_json(_plain(source, found))
    else:
        print(describe(found))
    if not found.is_identical:
        raise ReplayMismatch(f"{source!r}: {_mismatch(found)}")


def _repair(feed: str, redis: RedisOptions, as_json: bool) -> None:
    from workers.admin.repair import repair
    from workers.cli.progress import doing

    with redis.store(feed) as store, doing("comparing state and answers"):
        done = repair(store)
    if as_json:
        moved = done.after.seq - done.before.seq
        changes = {"appended": done.appended, "moved": moved, "dropped": done.dropped}
        show_json({"feed": feed, **changes})
    else:
        print(_repaired(feed, done))


def _repaired(feed: str, done: "Repaired") -> str:
    if done.appended:
        answers = counted(done.appended, "missing answer")
        return f"feed {feed}: {answers} written; out ends at {done.after.cursor.decode()}"
    if done.dropped:
        return (
            f"feed {feed}: no snapshot could be used; answering its input again gives its "
            f"{counted(done.after.seq, 'answer')}, as the next worker does before it goes on"
        )
    if done.before == done.after:
        return f"feed {feed}: state and answers agree; nothing to repair"
    return (
        f"feed {feed}: {counted(done.after.seq - done.before.seq, 'answer')} found as answering "
        f"the input again gives them; the state moved from seq {done.before.seq:,} to "
        f"{done.after.seq:,}"
    )


def describe(found: "Verification") -> str:
    """Return the result of a verification as text."""
    alarms = f" and {counted(found.alarms, 'alarm')}" if found.alarms else ""
    lines = [
        f"recomputed seq {found.start.seq:,} to {found.end.seq:,}: {found.answers:,} answers and "
        f"{found.reports:,} reports{alarms} compared, {found.trimmed:,} no longer kept",
        f"digest computed  {found.end.digest.hex()}",
        f"digest committed {found.committed.digest.hex()}"
        + ("" if found.has_ids else " (not comparable: early IDs are no longer kept)"),
    ]
    if found.erased or found.chained:
        lines.append(_not_recomputed(found))
    lines += [_difference(difference) for difference in found.differences[:SHOWN_DIFFERENCES]]
    if found.n_differences > SHOWN_DIFFERENCES:
        lines.append(f"... and {found.n_differences - SHOWN_DIFFERENCES:,} more that differ")
    return "\n".join([*lines, "identical" if found.is_identical else "NOT identical"])


def _not_recomputed(found: "Verification") -> str:
    erased = f"{counted(found.erased, 'entry', 'entries')} erased: not recomputable"
    parts = [erased] if found.erased else []
    if found.chained:
        text = f"{counted(found.chained, 'answer')} before that checked by the digest alone"
        if found.unlinked:
            text += f", which is not known for {found.unlinked:,} of them"
        parts.append(text)
    return "; ".join(parts)


def _difference(found: "Difference") -> str:
    committed, computed = (
        "nothing" if text is None else printable(text) for text in (found.committed, found.computed)
    )
    where = f"{found.stream} {found.id.decode()}"
    return f"differs at {where}\n  committed {committed}\n  computed  {computed}"


def _mismatch(found: "Verification") -> str:
    if found.n_differences:
        first = found.differences[0]
        return (
            f"{found.n_differences:,} entries differ from what recomputing gives, the first at "
            f"{first.id.decode()} of {first.stream}"
        )
    if (found.end.seq, found.end.n) == (found.committed.seq, found.committed.n):
        return "the digest of the answers is not the committed one"
    return (
        f"recomputing ends at seq {found.end.seq:,}, n {found.end.n:,}; committed are "
        f"{found.committed.seq:,} and {found.committed.n:,}"
    )


def _plain(source: str, found: "Verification") -> dict[str, object]:
    counts = ("answers", "reports", "alarms", "trimmed", "erased", "chained", "unlinked")
    return {
        "feed": source,
        "identical": found.is_identical,
        "from_seq": found.start.seq,
        "to_seq": found.end.seq,
        **{name: getattr(found, name) for name in counts},
        "differences": found.n_differences,
        "digest": found.end.digest.hex(),
        "committed_digest": found.committed.digest.hex(),
    }
