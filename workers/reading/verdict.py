"""The verdict on a feed: one sentence, its level, and what to do.

Every verdict is computed here, from a `FeedStatus`, without I/O. The first condition that holds
decides: whether a worker answers, then whether the answers can be trusted.

    cannot be read, gone                    the feed's condition is unknown
    no worker, parked, stuck, replaying     nothing is answered now
    an incident is open                     do not trust the answers, or take care
    no label for long, behind               the figures are old
    no guarantee, or off by A to B          take care
    warming up, too early to say            wait
    holds, but helps no more than a rule    take care
    holds and helps                         all is well

`evidence.py` has the statistics of the last four.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from workers.reading.answers import number
from workers.reading.evidence import (
    DEFAULT_TOLERANCE,
    MIN_SCORED,
    Benefit,
    Precision,
    benefit,
    deviation,
    precision,
)
from workers.reading.incidents import Incident
from workers.reading.status import FeedStatus
from workers.text import counted, share

Level = Literal["bad", "care", "wait", "well"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""Severity of a verdict, the worst first; their colours are red, amber, grey and green."""

_BEHIND_SECONDS = 10.0  # age of the oldest waiting entry from which a feed is behind
_STUCK_SECONDS = 30.0  # the same for a feed of which nothing is answered

PARKED_SECONDS = 660.0
"""Seconds after which a parked feed counts as without a worker: a live worker retries it within ten
minutes."""

_NO_LABEL_SECONDS = 600.0  # without a label, while answers wait for theirs
_TEXT_LENGTH = 300  # characters shown of a text that another program may have written

_PRINTED = (
    "feed", "verdict", "incident", "seq", "n", "waiting", "waiting_is_at_least", "waiting_seconds",
    "pending", "waiting_bytes", "cursor", "out", "met", "alarms", "dlq", "epoch", "writer",
    "holder", "digest", "snapshots", "validity", "open_alarms", "published", "consumers", "stored",
    "selective_labels", "kinds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """A sentence on the condition of a feed, and its severity."""

    level: Level
    sentence: str  # without a full stop
    advice: str = ""  # the action to take, or the reason; may be empty


def verdict(status: FeedStatus) -> Verdict:
    """Return the verdict on a feed.

    Examples
    --------
    >>> predicted = {"accuracy": 0.757, "probability": 0.752}
    >>> report = {"n": 5000, "scored": 4900, "headline": {"predicted": predicted}}
    >>> verdict(FeedStatus(feed="mail", holder="host-1", report=report)).sentence
    'Probabilities hold: .757 right where .752 was announced, over all 4,900'
    >>> from workers.reading.lag import Lag
    >>> verdict(FeedStatus(feed="mail", lag=Lag(12, False, 180.0))).sentence
    'No worker; 12 entries wait, the oldest for 3 minutes'
    """
    unanswered = _unanswered(status)
    if unanswered is None:
        return _outdated(status) or trust(status)
    if status.incident is None or status.problem or not status.exists:
        return unanswered
    sentence = f"{unanswered.sentence}. {incident_sentence(status.incident)}"
    level = min(unanswered.level, _level(status.incident), key=LEVELS.index)
    return Verdict(level, sentence, unanswered.advice)


def printed(status: FeedStatus) -> dict[str, Any]:
    """Return the object that `status --json` and the gateway give, for orjson."""
    return {
        name: verdict(status) if name == "verdict" else getattr(status, name) for name in _PRINTED
    }


def trust(status: FeedStatus) -> Verdict:
    """Return the verdict on the answers alone, whether or not a worker runs."""
    if status.incident is not None:
        return of_incident(status.incident)
    answer, report = status.answer, status.report
    guarantee, reason = answer.get("guarantee"), _text(answer.get("reason"))
    if answer.get("status") == "warming":
        return Verdict("wait", "Warming up", "The first model needs examples of two classes.")
    figures, settings = report or {}, _predictor(status.settings)
    tolerance = number(settings.get("tolerance", DEFAULT_TOLERANCE))
    agreed = precision(figures, tolerance)
    if answer.get("status") == "rejected" and not agreed.scored:
        advice = f"The newest was rejected: {reason or _text(answer.get('code'))}."
        return Verdict("bad", "No example could be used yet", advice)
    if guarantee == "none":
        return Verdict("care", "Take care: the answers have no guarantee", f"{_upper(reason)}.")
    off = deviation(figures, tolerance)
    if off is not None:
        return Verdict("care", f"Off by {off.words}", "No test has raised an alarm.")
    if not agreed.holds:
        return Verdict("wait", f"Too early to say ({_needs(agreed.needed)}): {_compared(agreed)}")
    reason = reason.rstrip(".")
    why = f"The guarantee is approximate: {reason}." if guarantee == "approximate" else ""
    return _of_benefit(agreed, benefit(figures, settings), why)


def _of_benefit(agreed: Precision, gain: Benefit | None, why: str) -> Verdict:
    """Return the verdict on probabilities that hold: whether the decisions help."""
    if gain is None:
        return Verdict("well", f"Probabilities hold: {_compared(agreed)}", why)
    rule, compared = _text(gain.rule), f"{_compared(agreed)}; {_against(gain)}"
    if gain.helps:
        return Verdict("well", f"Holds and helps: {compared}", why)
    if gain.helps is None:
        unsure = f"too early to say whether it helps more than always {rule}"
        return Verdict("well", f"Holds; {unsure} ({_needs(gain.needed)}): {compared}", why)
    advice = (
        "Take that action always, or look for features that tell the labels apart."
        if gain.in_money
        else "The label alone is of no use. Decide by the probability: the setting costs does."
    )
    return Verdict("care", f"Holds, but helps no more than always {rule}: {compared}", advice)


def _against(gain: Benefit) -> str:
    if gain.in_money:
        return f"{gain.own:.4g} an example, {gain.other:.4g} always {_text(gain.rule)}"
    if gain.own == gain.other:
        return f"always {_text(gain.rule)} is right as often"
    return f"always {_text(gain.rule)} is right in {share(gain.other)}"


def _compared(agreed: Precision) -> str:
    is_known = agreed.accuracy == agreed.accuracy and agreed.announced == agreed.announced
    if agreed.scored < MIN_SCORED or not is_known:
        return f"{counted(agreed.scored, 'answer')} scored"
    return (
        f"{share(agreed.accuracy)} right where {share(agreed.announced)} was announced, "
        f"{agreed.span}"
    )


def _needs(count: int) -> str:
    return f"needs about {counted(count, 'more label')}"


def _predictor(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    found = settings.get("predictor")
    return found if isinstance(found, dict) else {}


def of_incident(incident: Incident) -> Verdict:
    """Return the verdict while an incident is open."""
    return Verdict(_level(incident), incident_sentence(incident), _advice(incident))


def incident_sentence(incident: Incident) -> str:
    """Return the sentence about an open incident."""
    first = "Do not trust them" if incident.is_broken else "Take care"
    return f"{first} since example {incident.since:,}: {_text(incident.cause)}"


def of_end(
    incident: Incident, report: Mapping[str, Any] | None, settings: Mapping[str, Any]
) -> Verdict:
    """Return the verdict when an incident ends, given the report that ends it."""
    now = trust(FeedStatus(feed="", report=report, settings=settings))
    back = f"The guarantee is back since example {incident.until or 0:,}"
    return Verdict(now.level, f"{back}. {now.sentence}", now.advice)


def summary(verdicts: list[Verdict]) -> str:
    """Return a count of verdicts by level, such as "7 well, 1 not"."""
    levels = [verdict.level for verdict in verdicts]
    ill, unsure = levels.count("bad") + levels.count("care"), levels.count("wait")
    parts = [f"{levels.count('well'):,} well"]
    parts += [f"{ill:,} not"] if ill else []
    return ", ".join(parts + ([f"{unsure:,} to be seen"] if unsure else []))


def duration(seconds: float) -> str:
    """Return a duration in words, rounded down.

    Examples
    --------
    >>> duration(1.5), duration(180), duration(7300), duration(200_000)
    ('1 second', '3 minutes', '2 hours', '2 days')
    """
    for size, name, least in ((86400, "day", 2), (3600, "hour", 2), (60, "minute", 2)):
        if seconds >= least * size:
            return counted(int(seconds // size), name)
    return counted(int(seconds), "second")


def _unanswered(status: FeedStatus) -> Verdict | None:
    """Return the verdict if nothing is answered now, else None."""
    start = f"start one: online-svm worker {status.feed}"
    if status.problem:
        return Verdict("bad", "This feed cannot be read", _text(status.problem))
    if not status.exists:
        advice = "It was deleted, or never was. It appears as soon as examples are pushed to it."
        return Verdict("wait", "There is no such feed now", advice)
    if status.holder is None:
        return _without_worker(status, start)
    event = status.lifecycle
    if status.is_replayed and status.waiting and not status.rate:
        advice = "The worker answers again what the last one had learned."
        return Verdict("care", f"Replaying{_waits(status)}", advice)
    if event is not None and event.code == "failed" and event.writer == status.holder:
        return Verdict("bad", f"Set aside by its worker{_waits(status)}", f"{_text(event.detail)}")
    if not status.waiting:
        return None
    if status.rate == 0.0 and status.waiting_seconds > _STUCK_SECONDS:
        advice = f"See the log of worker {_text(status.holder)}, and the memory of Redis."
        return Verdict("bad", f"Nothing is answered{_waits(status)}", advice)
    return None


def _without_worker(status: FeedStatus, start: str) -> Verdict:
    if not status.has_begun:
        return Verdict("care", f"No worker has begun this feed{_waits(status)}", _upper(start))
    event = status.lifecycle
    if event is not None and event.code == "input_ended":
        return Verdict("wait", "The input has ended", _text(event.detail))
    since, why = "", ""
    ago = 0.0 if event is None else max(0.0, status.now - event.time / 1000)
    if event is not None and event.code == "failed" and ago < PARKED_SECONDS:
        why = f"{_text(event.detail)}. It is tried again while that worker runs. If none runs: "
        sentence = f"Set aside by its worker{_waits(status)}"
        return Verdict("bad", sentence, f"{why}{start}")
    if event is not None and event.code in ("stopped", "failed"):
        since = f" for {duration(ago)}"
        why = f". The last one {'stopped' if event.code == 'stopped' else 'ended with'}: "
        why += _text(event.detail)
    level: Level = "bad" if status.waiting else "care"
    waits = _waits(status, with_age=not since)
    return Verdict(level, f"No worker{since}{waits}", f"{_upper(start)}{why}")


def _outdated(status: FeedStatus) -> Verdict | None:
    """Return the verdict if the figures are outdated and no incident is open, else None."""
    if status.incident is not None:
        return None
    silent = status.label_seconds
    if status.unlabelled and silent is not None and silent > _NO_LABEL_SECONDS:
        sentence = f"No label for {duration(silent)}; {counted(status.unlabelled, 'answer')} "
        advice = "Nothing is learned or checked without labels: look at what sends them."
        return Verdict("care", sentence + ("waits" if status.unlabelled == 1 else "wait"), advice)
    if status.waiting and status.waiting_seconds > _BEHIND_SECONDS:
        advice = "A number that does not fall: the worker is too slow for its input."
        return Verdict("care", f"Behind{_waits(status)}", advice)
    return None


def _waits(status: FeedStatus, with_age: bool = True) -> str:
    if not status.waiting:
        return ""
    more = " or more" if status.waiting_is_at_least else ""
    noun = "entry waits" if status.waiting == 1 and not more else "entries wait"
    age = f", the oldest for {duration(status.waiting_seconds)}"
    has_age = with_age and status.waiting_seconds > 1.0
    return f"; {status.waiting:,}{more} {noun}" + age * has_age


def _level(incident: Incident) -> Level:
    return "bad" if incident.is_broken else "care"


def _advice(incident: Incident) -> str:
    parts = counted(len(incident.parts), "alarm")
    if incident.is_broken:
        return f"{parts}. See what changed at the source, and what the labels mean now."
    if incident.kinds == {"exchangeability"}:
        has_labels = any(part.scope == "labels" for part in incident.parts)
        see = (
            "why a class comes more or less often"
            if has_labels
            else "which features moved, and why"
        )
        return f"{parts}. The probabilities may still hold: see {see}."
    return f"{parts}. The others hold: see what that part is, and give it a feature of its own."


def _text(value: Any) -> str:
    return "" if value is None else str(value)[:_TEXT_LENGTH]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
