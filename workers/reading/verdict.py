"""The verdict on a feed: one sentence, how serious that is, and what to do.

`status`, the page, the report and the webhook say what is made here. Nothing is read here: what is
known of a feed comes in as `Facts`, ages in seconds. Whether anybody answers comes first, then
whether the answers can be trusted:

    cannot be read, gone                    nothing can be said
    no worker, set aside, stuck, replaying  nothing is answered now
    an incident is open                     do not trust them, or take care
    no guarantee, accuracy far off          take care
    no label for long, behind               what is said is old
    warming up, too early to say            wait
    hold                                    all is well
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from workers.feed.position import parse_id
from workers.feed.state_fields import PendingLabels
from workers.plural import counted
from workers.reading.answers import number
from workers.reading.events import Event
from workers.reading.incidents import Incident

Level = Literal["bad", "care", "wait", "well"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""How serious a verdict is, the worst first; it decides the colour: red, amber, grey, green."""

BEHIND = 10.0
"""Seconds that the oldest entry waits from which a feed is called behind."""

STUCK = 30.0
"""The same where no entry was answered meanwhile, from which a feed is called stuck."""

SET_ASIDE = 660.0
"""Seconds after which a feed that was set aside has no worker: one that lives tries it again within
ten minutes."""

NO_LABEL = 600.0
"""Seconds without a label, while answers wait for theirs, from which that is said."""

LEAST = 100
"""Scored answers from which accuracy and probability are compared."""

FAR_Z, FAR = 4.0, 0.05
"""Standard deviations, and difference, from which accuracy is far from what was announced although
no test has raised an alarm yet."""

_MOST = 300  # characters of a text that somebody else wrote


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of a feed first.

    Attributes
    ----------
    level : {"bad", "care", "wait", "well"}
    sentence : str
        Without a full stop.
    advice : str
        What to do, or why; empty where nothing is to be added.
    """

    level: Level
    sentence: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a feed when it is judged.

    Attributes
    ----------
    feed : str
    problem : str
        Why it cannot be read; empty if it can.
    exists, has_begun : bool
        Whether any of its keys exists, and whether a worker ever had it.
    holder : str or None
        The worker that holds it.
    lifecycle : Event or None
        The newest event `began`, `stopped`, `failed` or `input_ended`.
    now : float
        Seconds since 1970.
    is_replayed : bool
        Whether the last writer has not begun to answer; see the function.
    waiting : int
        Entries that wait.
    waiting_is_at_least : bool
        Whether more may wait.
    waiting_seconds : float
        Age of the oldest of them.
    rate : float or None
        Entries answered a second; None where nobody has watched for long enough.
    unlabelled : int
        Answers that wait for their label.
    label_seconds : float or None
        How long a label has been missing, at least; see `missing_for`.
    answer : mapping
        The newest answer; see `newest_answer`.
    report : mapping or None
        The newest report.
    incident : Incident or None
        The one that is open.
    """

    feed: str
    problem: str = ""
    exists: bool = True
    has_begun: bool = True
    holder: str | None = None
    lifecycle: Event | None = None
    now: float = 0.0
    is_replayed: bool = False
    waiting: int = 0
    waiting_is_at_least: bool = False
    waiting_seconds: float = 0.0
    rate: float | None = None
    unlabelled: int = 0
    label_seconds: float | None = None
    answer: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] | None = None
    incident: Incident | None = None


def verdict(facts: Facts) -> Verdict:
    """Return the verdict on a feed.

    Examples
    --------
    >>> overall = {"scored": 1000, "accuracy": 0.757, "probability": 0.739, "z": 1.3}
    >>> report = {"n": 5000, "scored": 4900, "windowed": {"overall": overall}}
    >>> verdict(Facts("mail", holder="host-1", report=report)).sentence
    'Probabilities hold: .757 right where .739 was announced, over the last 1,000'
    >>> verdict(Facts("mail", waiting=12, waiting_seconds=180.0)).sentence
    'No worker; 12 entries wait, the oldest for 3 minutes'
    """
    unanswered = _unanswered(facts)
    if unanswered is None:
        return _old(facts) or trust(facts.report, facts.answer, facts.incident)
    if facts.incident is None or facts.problem or not facts.exists:
        return unanswered
    told = incident_sentence(facts.incident)
    sentence = f"{unanswered.sentence}. {told}"
    level = min(unanswered.level, _level(facts.incident), key=LEVELS.index)
    return Verdict(level, sentence, unanswered.advice)


_LIFECYCLE = ("began", "stopped", "failed", "input_ended")


def lifecycle(events: Iterable[Event]) -> Event | None:
    """Return the newest event that says whether a worker is there.

    An input that has ended stays so: that a worker stopped since says less.

    Examples
    --------
    >>> events = [Event(0.0, code, "host-1", "") for code in ("began", "input_ended", "stopped")]
    >>> lifecycle(events).code
    'input_ended'
    """
    found = [event for event in events if event.code in _LIFECYCLE]
    ended = [event for event in found if event.code == "input_ended"]
    last = found[-1] if found else None
    return ended[-1] if ended and last is not None and last.code != "failed" else last


def is_replayed(epoch: int, events: Iterable[Event]) -> bool:
    """Return whether the last writer of a feed has not begun to answer: it still replays.

    Parameters
    ----------
    epoch : int
        Of the feed: number of its last writer.
    events : iterable of Event
        The oldest first. Without a beginning among them nothing is known.

    Examples
    --------
    >>> began = Event(0.0, "began", "host-1", "epoch 2, seq 5000")
    >>> is_replayed(2, [began]), is_replayed(3, [began]), is_replayed(3, [])
    (False, True, False)
    """
    told = [event.detail for event in events if event.code == "began"]
    found = re.match(r"epoch (\d{1,18}),", told[-1]) if told else None
    return found is not None and epoch > int(found[1])


def tells_guarantee(said: Any) -> bool:
    """Return whether an entry of `out` says how far it can be trusted: a label, say, does not."""
    return isinstance(said, dict) and (
        "guarantee" in said or said.get("status") in ("warming", "ok")
    )


def newest_answer(said: Iterable[Any]) -> Mapping[str, Any]:
    """Return the newest entry that tells its guarantee; without one the newest of this program.

    Parameters
    ----------
    said : iterable of object
        Parsed payloads of `out`, the oldest first.

    Examples
    --------
    >>> newest_answer([{"status": "ok", "guarantee": "none"}, {"status": "label"}, None])
    {'status': 'ok', 'guarantee': 'none'}
    """
    known = [one for one in said if isinstance(one, dict)]
    told = [one for one in known if tells_guarantee(one)] or known
    return told[-1] if told else {}


def missing_for(label_at: float | None, pending: PendingLabels | None, now: float) -> float | None:
    """Return for how many seconds a label has been missing; None where that is not known.

    That is the time since the last label, or since the oldest answer without one if that is less.

    Parameters
    ----------
    label_at : float or None
        See `newest_label`.
    pending : PendingLabels or None
    now : float
        Seconds since 1970.

    Examples
    --------
    >>> missing_for(1000.0, PendingLabels(2, 1, 8000), 10.0)
    2.0
    """
    if label_at is None:
        return None
    since = None if pending is None else pending.since
    return max(0.0, now - max(label_at, since or 0.0) / 1000)


def newest_label(entries: Iterable[tuple[bytes, Any]]) -> float | None:
    """Return when the newest label came, in milliseconds since 1970; None without any entry.

    Parameters
    ----------
    entries : iterable of (bytes, object)
        Entries of `out`, the oldest first: IDs and parsed payloads. Where no label is among them,
        none has come since the first of them.

    Examples
    --------
    >>> newest_label([(b"1-0", {"status": "label"}), (b"2-0", {"status": "ok"})])
    1.0
    """
    found = None
    for entry, said in entries:
        is_label = isinstance(said, dict) and said.get("status") == "label"
        if found is None or is_label:
            found = float(parse_id(entry)[0])
    return found


def trust(
    report: Mapping[str, Any] | None, answer: Mapping[str, Any], incident: Incident | None
) -> Verdict:
    """Return whether the answers of a feed can be trusted, whoever answers now.

    Parameters
    ----------
    report : mapping or None
        The newest message of `met`.
    answer : mapping
        See `newest_answer`.
    incident : Incident or None
        The one that is open.
    """
    if incident is not None:
        return of_incident(incident)
    guarantee, reason = answer.get("guarantee"), _text(answer.get("reason"))
    if answer.get("status") == "warming":
        return Verdict("wait", "Warming up", "Answers carry probabilities once two classes came.")
    figures, over = _figures(report or {})
    if answer.get("status") == "rejected" and not over:
        advice = f"The newest was rejected: {reason or _text(answer.get('code'))}."
        return Verdict("bad", "No example could be used yet", advice)
    if guarantee == "none":
        return Verdict("care", "Take care: the answers have no guarantee", f"{_upper(reason)}.")
    accuracy, announced = number(figures.get("accuracy")), number(figures.get("probability"))
    if over < LEAST or accuracy != accuracy or announced != announced:
        scored = counted(over, "answer")
        return Verdict("wait", f"Too early to say: {scored} scored", f"A verdict needs {LEAST}.")
    beside = f"{_share(accuracy)} right where {_share(announced)} was announced, {_over(report)}"
    if abs(accuracy - announced) > FAR and abs(number(figures.get("z"))) > FAR_Z:
        return Verdict("care", f"Take care: {beside}", "No test has raised an alarm.")
    why = f"The guarantee is approximate: {reason}." if guarantee == "approximate" else ""
    return Verdict("well", f"Probabilities hold: {beside}", why)


def of_incident(incident: Incident) -> Verdict:
    """Return the verdict while an incident is open."""
    return Verdict(_level(incident), incident_sentence(incident), _advice(incident))


def incident_sentence(incident: Incident) -> str:
    """Return what an open incident says of the answers.

    Examples
    --------
    >>> from online_svm.stream.alarm import Alarm
    >>> labels = Alarm(4047, "exchangeability", "overall", None, "ranks", 5.0, 4.6, 10)
    >>> incident_sentence(Incident((labels,)))
    'Do not trust them since example 4,047: the labels changed'
    """
    first = "Do not trust them" if incident.is_broken else "Take care"
    return f"{first} since example {incident.since:,}: {_text(incident.cause)}"


def of_end(incident: Incident, report: Mapping[str, Any] | None) -> Verdict:
    """Return the verdict at the end of an incident.

    Parameters
    ----------
    incident : Incident
    report : mapping or None
        The one that says that no alarm is open.

    Examples
    --------
    >>> from online_svm.stream.alarm import Alarm
    >>> labels = Alarm(4047, "exchangeability", "overall", None, "ranks", 5.0, 4.6, 10)
    >>> of_end(Incident((labels,), 5000), None).sentence
    'The guarantee is back since example 5,000. Too early to say: 0 answers scored'
    """
    now = trust(report, {}, None)
    back = f"The guarantee is back since example {incident.until or 0:,}"
    return Verdict(now.level, f"{back}. {now.sentence}", now.advice)


def summary(verdicts: list[Verdict]) -> str:
    """Return how many feeds are well.

    Examples
    --------
    >>> summary([Verdict("well", "x")] * 7 + [Verdict("bad", "x")])
    '7 well, 1 not'
    >>> summary([Verdict("well", "x"), Verdict("wait", "x")])
    '1 well, 1 to be seen'
    """
    levels = [one.level for one in verdicts]
    ill, unsure = levels.count("bad") + levels.count("care"), levels.count("wait")
    parts = [f"{levels.count('well'):,} well"]
    parts += [f"{ill:,} not"] if ill else []
    return ", ".join(parts + ([f"{unsure:,} to be seen"] if unsure else []))


def duration(seconds: float) -> str:
    """Return a time in words, rounded down.

    Examples
    --------
    >>> duration(1.5), duration(180), duration(7300), duration(200_000)
    ('1 second', '3 minutes', '2 hours', '2 days')
    """
    for size, name, least in ((86400, "day", 2), (3600, "hour", 2), (60, "minute", 2)):
        if seconds >= least * size:
            return counted(int(seconds // size), name)
    return counted(int(seconds), "second")


def _unanswered(facts: Facts) -> Verdict | None:
    """Return why nothing is answered now; None where something is."""
    worker = f"start one: online-svm worker {facts.feed}"
    if facts.problem:
        return Verdict("bad", "This feed cannot be read", _text(facts.problem))
    if not facts.exists:
        advice = "It was deleted, or never was. It appears as soon as examples are pushed to it."
        return Verdict("wait", "There is no such feed now", advice)
    if facts.holder is None:
        return _without_worker(facts, worker)
    event = facts.lifecycle
    if facts.is_replayed and facts.waiting and not facts.rate:
        advice = "The worker answers again what the last one had learned."
        return Verdict("care", f"Replaying{_waits(facts)}", advice)
    if event is not None and event.code == "failed" and event.writer == facts.holder:
        return Verdict("bad", f"Set aside by its worker{_waits(facts)}", f"{_text(event.detail)}")
    if not facts.waiting:
        return None
    if facts.rate == 0.0 and facts.waiting_seconds > STUCK:
        advice = f"See the log of worker {_text(facts.holder)}, and the memory of Redis."
        return Verdict("bad", f"Nothing is answered{_waits(facts)}", advice)
    return None


def _without_worker(facts: Facts, start: str) -> Verdict:
    if not facts.has_begun:
        return Verdict("care", f"No worker has begun this feed{_waits(facts)}", _upper(start))
    event = facts.lifecycle
    if event is not None and event.code == "input_ended":
        return Verdict("wait", "The input has ended", _text(event.detail))
    since, why = "", ""
    ago = 0.0 if event is None else max(0.0, facts.now - event.time / 1000)
    if event is not None and event.code == "failed" and ago < SET_ASIDE:
        why = f"{_text(event.detail)}. It is tried again while that worker runs. If none runs: "
        sentence = f"Set aside by its worker{_waits(facts)}"
        return Verdict("bad", sentence, f"{why}{start}")
    if event is not None and event.code in ("stopped", "failed"):
        since = f" for {duration(ago)}"
        why = f". The last one {'stopped' if event.code == 'stopped' else 'ended with'}: "
        why += _text(event.detail)
    level: Level = "bad" if facts.waiting else "care"
    waits = _waits(facts, with_age=not since)
    return Verdict(level, f"No worker{since}{waits}", f"{_upper(start)}{why}")


def _old(facts: Facts) -> Verdict | None:
    """Return why what is said of the answers is old; None where an incident says more, or nothing.

    Property: no verdict of a feed whose incident is open says that the probabilities hold.
    """
    if facts.incident is not None:
        return None
    silent = facts.label_seconds
    if facts.unlabelled and silent is not None and silent > NO_LABEL:
        sentence = f"No label for {duration(silent)}; {counted(facts.unlabelled, 'answer')} "
        advice = "Nothing is learned or checked without labels: look at what sends them."
        return Verdict("care", sentence + ("waits" if facts.unlabelled == 1 else "wait"), advice)
    if facts.waiting and facts.waiting_seconds > BEHIND:
        advice = "A number that does not fall: the worker is too slow for its input."
        return Verdict("care", f"Behind{_waits(facts)}", advice)
    return None


def _waits(facts: Facts, with_age: bool = True) -> str:
    if not facts.waiting:
        return ""
    more = " or more" if facts.waiting_is_at_least else ""
    noun = "entry waits" if facts.waiting == 1 and not more else "entries wait"
    told = f"; {facts.waiting:,}{more} {noun}"
    if not (with_age and facts.waiting_seconds > 1.0):
        return told
    return f"{told}, the oldest for {duration(facts.waiting_seconds)}"


def _level(incident: Incident) -> Level:
    return "bad" if incident.is_broken else "care"


def _advice(incident: Incident) -> str:
    parts = counted(len(incident.parts), "alarm")
    if incident.is_broken:
        return f"{parts}. See what changed at the source, and what the labels mean now."
    if incident.kinds == {"exchangeability"}:
        return f"{parts}. The probabilities may still hold: see which features moved, and why."
    return f"{parts}. The others hold: see what that part is, and give it a feature of its own."


def _figures(report: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
    """Return the figures of the last scored examples, and how many; of all without a window."""
    recent = _object(_object(report.get("windowed")).get("overall"))
    if recent:
        return recent, _count(recent.get("scored"))
    return _object(_object(report.get("headline")).get("predicted")), _count(report.get("scored"))


def _over(report: Mapping[str, Any] | None) -> str:
    recent = _object(_object((report or {}).get("windowed")).get("overall"))
    over = _figures(report or {})[1]
    return f"over the last {over:,}" if recent else f"over all {over:,}"


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    found = number(value)
    return int(found) if found >= 0 else 0


def _share(value: float) -> str:
    """Return a share without its zero.

    Examples
    --------
    >>> _share(0.7571), _share(1.0)
    ('.757', '1.000')
    """
    return f"{value:.3f}".removeprefix("0")


def _text(value: Any) -> str:
    return "" if value is None else str(value)[:_MOST]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
