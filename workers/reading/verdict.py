"""The verdict on a feed: one sentence, its level, and what to do.

Every verdict is computed here, from a `FeedStatus`, without I/O. The first condition that holds
decides: whether a worker answers, then whether the answers can be trusted.

    cannot be read, gone                    the feed's condition is unknown
    no worker, parked, stuck, replaying     nothing is answered now
    an incident is open                     do not trust the answers, or take care
    entries are rejected                    nothing is learned from them
    no labels, labels of one part, behind   the figures are old, or about a part
    no guarantee, a notice, off             take care
    the last labels differ                  take care
    warming up, too early to say            wait
    holds, but helps no more                take care
    holds                                   all is well

`agreement.py` has the statistics of labels and probabilities. What decisions gain over the best
constant decision is computed here, from one report and the stored settings. Without costs the
constant decision is the most frequent class: two accuracies on the same examples. With costs it is
the action with the least mean cost, `review` included, and the gain is given at `_Z_GAIN` standard
errors.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from online_svm.stream.alarm import of_hundred, since_example
from online_svm.stream.notice import FeatureNotice, Notice
from workers.reading.agreement import MIN_SCORED, ReportedAgreement, silent, unlabelled_part
from workers.reading.answers import as_list, as_object, number
from workers.reading.dates import NO_DATES, Dates, date_of
from workers.reading.facts import facts
from workers.reading.incidents import AnyNotice, Incident
from workers.reading.status import FeedStatus
from workers.text import counted, four_digits, share

Level = Literal["bad", "care", "wait", "well"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""Severity of a verdict, the worst first; their colours are red, amber, grey and green."""

_BEHIND_SECONDS = 10.0  # age of the oldest waiting entry from which a feed is behind
_STUCK_SECONDS = 30.0  # the same for a feed of which nothing is answered

PARKED_SECONDS = 660.0
"""Seconds after which a parked feed counts as without a worker: a live worker retries it within ten
minutes."""

_NO_LABEL_SECONDS = 600.0  # without a label, while answers wait for theirs
_NO_LABELS = "Nothing is learned or checked without labels: look at what sends them."
_TEXT_LENGTH = 300  # characters shown of a text that another program may have written

_PRINTED = (
    "feed", "verdict", "facts", "incident", "seq", "n", "duplicates", "waiting",
    "waiting_is_at_least",
    "waiting_seconds", "pending", "waiting_bytes", "cursor", "out", "met", "alarms", "dlq", "epoch",
    "writer", "holder", "digest", "snapshots", "validity", "open_alarms", "notices",
    "silenced_notices", "published", "consumers", "stored", "selective_labels", "kinds", "memory",
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
    >>> since = {"labels": 4900, "within": 0.028, "gain": 0.2, "gain_error": 0.01}
    >>> report = {"n": 5000, "agreement": {"since": since, "start": 0}}
    >>> verdict(FeedStatus(feed="mail", holder="host-1", report=report)).sentence
    'Holds: right within .03 over all 4,900; helps'
    >>> from workers.reading.lag import Lag
    >>> verdict(FeedStatus(feed="mail", lag=Lag(12, False, 180.0))).sentence
    'No worker; 12 entries wait, the oldest for 3 minutes'
    """
    unanswered = _unanswered(status)
    if unanswered is None:
        return _outdated(status) or trust(status)
    if status.incident is None or status.problem or not status.exists:
        return unanswered
    sentence = f"{unanswered.sentence}. {incident_sentence(status.incident, status.dates)}"
    level = min(unanswered.level, _level(status.incident), key=LEVELS.index)
    return Verdict(level, sentence, unanswered.advice)


def printed(status: FeedStatus) -> dict[str, Any]:
    """Return the object that `status --json` and the gateway give, for orjson."""
    computed = {"verdict": verdict, "facts": facts}
    return {
        name: computed[name](status) if name in computed else getattr(status, name)
        for name in _PRINTED
    }


def trust(status: FeedStatus) -> Verdict:
    """Return the verdict on the answers alone, whether or not a worker runs."""
    if status.incident is not None:
        return _with_feature(of_incident(status.incident, status.dates), status)
    answer, report = status.answer, status.report or {}
    guarantee, reason = answer.get("guarantee"), _text(answer.get("reason"))
    agreed = ReportedAgreement.of(report, _predictor(status.settings))
    if answer.get("status") == "warming":
        return Verdict("wait", "Warming up", "The first model needs examples of two classes.")
    if answer.get("status") == "rejected" and not agreed.since.labels:
        advice = f"The newest was rejected: {reason or _text(answer.get('code'))}."
        return Verdict("bad", "No example could be used yet", advice)
    if part := unlabelled_part(report):
        advice = "All figures are of the others. label_budget, in a fork, lets them hold for all."
        return Verdict("care", f"Known of a part alone: {part}", advice)
    if guarantee == "none":
        return Verdict("care", "Take care: the answers have no guarantee", f"{_upper(reason)}.")
    if status.notices:
        return of_notice(status.notices[0], len(status.notices) - 1, status.dates)
    if agreed.since.labels < MIN_SCORED:
        scored = number(report.get("scored"))
        few = f"{counted(int(scored) if scored >= 0 else 0, 'answer')} scored"
        return Verdict("wait", f"Too early to say ({agreed.needed}): {few}")
    off = agreed.off()
    if off is not None:
        return Verdict("care", f"Off: {off[0]}", off[1])
    if agreed.has_changed and agreed.is_lasting:
        return _changed(agreed)
    if agreed.has_changed or agreed.bound is None or (agreed.rare and agreed.rare[2]):
        return Verdict("wait", f"Too early to say ({agreed.needed}): {_compared(agreed)}")
    reason = reason.rstrip(".")
    why = f"The guarantee is approximate: {reason}." if guarantee == "approximate" else ""
    return _of_benefit(agreed, report, _predictor(status.settings), why)


def _with_feature(judged: Verdict, status: FeedStatus) -> Verdict:
    """Return a verdict on an incident whose advice begins with the feature that has a notice."""
    for notice in status.notices:
        if isinstance(notice, FeatureNotice):
            words = notice.words_since(date_of(status.dates, notice.since))
            return replace(judged, advice=f"{_upper(_text(words))}. {judged.advice}")
    return judged


def _changed(agreed: ReportedAgreement) -> Verdict:
    """Return the verdict where the last labels differ from all since the start."""
    found = of_hundred("", agreed.last["announced"], agreed.last["accuracy"])
    sentence = f"The last {agreed.last.labels:,} differ: {found}"
    advice = "See the windowed figures of classes and slices. No test has raised an alarm."
    return Verdict("care", sentence, advice)


def _of_benefit(
    agreed: ReportedAgreement, report: Mapping[str, Any], settings: Mapping[str, Any], why: str
) -> Verdict:
    """Return the verdict on probabilities that hold: whether they help."""
    saved = saving(report, settings)
    beside = saved.words if saved else "" if agreed.is_of_score else accuracies(report)
    beside = beside and f" ({beside})"
    holds = f"Holds: {agreed.words}"
    if agreed.helps is False:
        advice = "The features tell nothing about the labels that their frequencies do not."
        return Verdict("care", f"{holds}, but helps no more than the base rate{beside}", advice)
    if saved is not None and saved.helps is False:
        advice = "Take that action always, or look for features that tell the labels apart."
        return Verdict(
            "care", f"{holds}, but costs no less than always {saved.rule}{beside}", advice
        )
    helps = "helps" if agreed.helps else "too early to say whether it helps"
    return Verdict("well", f"{holds}; {helps}{beside}", why)


def _compared(agreed: ReportedAgreement) -> str:
    found = of_hundred("", agreed.since["announced"], agreed.since["accuracy"])
    return f"{found}, {agreed.since.words}"


def _predictor(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    found = settings.get("predictor")
    return found if isinstance(found, dict) else {}


def of_incident(incident: Incident, dates: Dates = NO_DATES) -> Verdict:
    """Return the verdict while an incident is open."""
    return Verdict(_level(incident), incident_sentence(incident, dates), _advice(incident))


def incident_sentence(incident: Incident, dates: Dates = NO_DATES) -> str:
    """Return the sentence about an open incident."""
    first = "Do not trust them" if incident.is_broken else "Take care"
    since = since_example(incident.since, date_of(dates, incident.since))
    return f"{first} {since}: {_text(incident.cause)}"


def of_notice(notice: AnyNotice, others: int = 0, dates: Dates = NO_DATES) -> Verdict:
    """Return the verdict while a notice is open, and so many others."""
    is_off = isinstance(notice, Notice) and notice.scope != "labels"
    kind = "Off" if is_off else "Take care"
    advice = f"And {counted(others, 'other notice')}." if others else ""
    words = notice.words_since(date_of(dates, notice.since))
    return Verdict("care", f"{kind}: {_text(words)}", advice)


def of_end(
    incident: Incident, report: Mapping[str, Any] | None, settings: Mapping[str, Any]
) -> Verdict:
    """Return the verdict when an incident ends, given the report that ends it."""
    now = trust(FeedStatus(feed="", report=report, settings=settings))
    back = f"The guarantee is back since example {incident.until or 0:,}"
    return Verdict(now.level, f"{back}. {now.sentence}", now.advice)


def summary(verdicts: list[Verdict]) -> str:
    """Return a count of verdicts by level, such as "7 of 8 feeds well, 1 not"."""
    levels = [verdict.level for verdict in verdicts]
    ill, unsure = levels.count("bad") + levels.count("care"), levels.count("wait")
    parts = [f"{levels.count('well'):,} of {counted(len(levels), 'feed')} well"]
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
    if status.rejected is not None:
        rejected, of = status.rejected
        sentence = f"{rejected:,} of the newest {of:,} entries were rejected"
        advice = f"Nothing is learned from them. For the reasons: online-svm tail {status.feed}"
        return Verdict("bad", sentence, advice)
    silence = status.label_seconds
    if status.unlabelled and silence is not None and silence > _NO_LABEL_SECONDS:
        sentence = f"No label for {duration(silence)}; {counted(status.unlabelled, 'answer')} "
        return Verdict(
            "care", sentence + ("waits" if status.unlabelled == 1 else "wait"), _NO_LABELS
        )
    answers, learned = _since_report(status)
    usual, delay = _usual(status)
    if silent(answers, learned, usual, delay):
        sentence = f"Labels have stopped: {learned:,} for the last {answers:,} answers"
        return Verdict("care", sentence, _NO_LABELS)
    if status.waiting and status.waiting_seconds > _BEHIND_SECONDS:
        advice = "A number that does not fall: the worker is too slow for its input."
        return Verdict("care", f"Behind{_waits(status)}", advice)
    return None


def _since_report(status: FeedStatus) -> tuple[int, int]:
    """Return the answers and the learned examples since the newest report."""
    report = status.report or {}
    seq, n = number(report.get("seq")), number(report.get("n"))
    if not seq <= status.seq or not n <= status.n:
        return 0, 0
    return status.seq - int(seq), status.n - int(n)


def _usual(status: FeedStatus) -> tuple[float, float]:
    """Return the share of entries that were learned, and how many entries a label may take.

    Where a horizon counts time, only time tells that no label comes; the delay is infinite then.
    """
    report, horizon = status.report or {}, _predictor(status.settings).get("horizon", 0)
    seq, n = number(report.get("seq")), number(report.get("n"))
    delay = number(horizon)
    return (n / (seq + 1.0) if seq >= 0 else 0.0), (delay if delay >= 0 else math.inf)


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


_Z_GAIN = 2.33  # one-sided 1 %
_NEGLIGIBLE = 0.05  # share of the rule's cost, below which a gain does not count


@dataclass(frozen=True, slots=True)
class CostSaving:
    """The mean cost of the decisions, and of the best constant decision."""

    rule: str  # the action that is always chosen
    own: float
    other: float
    error: float  # standard error of the difference

    @property
    def helps(self) -> bool | None:
        """Whether the decisions are better than the rule; None if that is not known yet."""
        gain, reach = self.other - self.own, _Z_GAIN * self.error
        if gain - reach > 0.0:
            return True
        return False if gain + reach <= _NEGLIGIBLE * abs(self.other) else None

    @property
    def words(self) -> str:
        """Both costs, as ".9 an example, 1.5 always review"."""
        return f"{four_digits(self.own)} an example, {four_digits(self.other)} always {self.rule}"


def accuracies(report: Mapping[str, Any]) -> str:
    """Return the accuracy of the labels and of always the most frequent class; "" if unknown.

    Examples
    --------
    >>> legit = {"label": "legit", "examples": 970, "predicted": 1000, "accuracy": 0.97}
    >>> fraud = {"label": "fraud", "examples": 30, "predicted": 0, "accuracy": None}
    >>> accuracies({"windowed": {"overall": {"scored": 1000}, "classes": [fraud, legit]}})
    '.970 right, always legit .970'
    """
    window = as_object(report.get("windowed"))
    n = _count(as_object(window.get("overall")).get("scored"))
    classes = [each for each in map(as_object, as_list(window.get("classes"))) if each.get("label")]
    examples = [_count(each.get("examples")) for each in classes]
    if n < MIN_SCORED or sum(examples) > n or not classes:
        return ""
    if sum(_count(each.get("predicted")) for each in classes) != n:
        return ""  # more classes than a report lists
    hits = sum(_hits(each) for each in classes)
    best = max(range(len(classes)), key=lambda k: examples[k])
    rule = str(classes[best]["label"])[:60]
    return f"{share(hits / n)} right, always {rule} {share(examples[best] / n)}"


def _hits(figures: Mapping[str, Any]) -> int:
    share_right = number(figures.get("accuracy"))
    return 0 if math.isnan(share_right) else round(share_right * _count(figures.get("predicted")))


def saving(report: Mapping[str, Any], settings: Mapping[str, Any]) -> CostSaving | None:
    """Return the saving of decisions by costs; None without costs, or if the report does not tell.

    `settings`: those of the predictor.
    """
    costs = as_object(settings.get("costs"))
    found = as_object(report.get("costs"))
    n, own = _count(found.get("scored")), number(found.get("mean"))
    always = {str(name): number(mean) for name, mean in as_object(found.get("always")).items()}
    taken = {str(name): _count(count) for name, count in as_object(found.get("taken")).items()}
    means = [mean for mean in always.values() if not math.isnan(mean)]
    if n < MIN_SCORED or math.isnan(own) or len(means) != len(always) or not means or not costs:
        return None
    rule = min(always, key=lambda name: always[name])
    try:
        square = _mean_square(costs, rule, taken, _frequencies(report))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    gain = always[rule] - own
    error = math.sqrt(max(0.0, square - gain * gain) / n)
    return CostSaving(rule[:60], own, always[rule], error)


def _mean_square(
    costs: Mapping[str, Any],
    rule: str,
    taken: Mapping[str, int],
    frequencies: Mapping[str, float],
) -> float:
    """Return a bound on the mean square of the difference in cost between decisions and a rule.

    A report counts actions and labels, not their pairs. So the bound takes, for each label, the
    worst action that was taken; or for each action the worst label, if that is smaller.
    """
    from online_svm.metrics.cost_matrix import CostMatrix

    labels = tuple(costs)
    matrix = CostMatrix(costs, labels)
    squares = (matrix.costs - matrix.costs[:, [matrix.actions.index(rule)]]) ** 2
    counts = [taken.get(action, 0) for action in matrix.actions]
    by_action = float(squares.max(axis=0) @ counts) / sum(counts)
    if set(frequencies) != set(labels):
        return by_action
    used = squares[:, [count > 0 for count in counts]].max(axis=1)
    by_label = sum(frequencies[label] * value for label, value in zip(labels, used, strict=True))
    return min(by_action, float(by_label))


def _frequencies(report: Mapping[str, Any]) -> dict[str, float]:
    classes = map(as_object, as_list(as_object(report.get("windowed")).get("classes")))
    found = {str(each.get("label")): number(each.get("frequency")) for each in classes}
    return {} if any(math.isnan(value) for value in found.values()) else found


def _count(value: Any) -> int:
    found = number(value)
    return int(found) if found >= 0 else 0
