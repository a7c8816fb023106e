"""The newest validity report as lines of text: recent figures, all figures, delayed labels."""

from collections.abc import Iterator, Mapping
from typing import Any

from workers.reading.given_score import score_text
from workers.text import counted, promise_text

Figures = dict[str, Any]

_COUNTS = (
    ("late", "came late"),
    ("repeated", "repeated"),
    ("corrected", "corrected"),
    ("censored", "examples whose horizon passed without one"),
    ("dropped", "examples given up, too many waited"),
    ("early", "came before their example"),
    ("backwards", "examples whose time ran backwards"),
    ("ahead", "examples whose time was far ahead"),
)


_MAX_NAMED = 8  # features named in a line
_MAX_MISSING = 0.05  # wanted labels that did not come, for each that did, before the text warns


def validity_lines(message: Figures) -> Iterator[tuple[str, str]]:
    """Yield the lines of a report, each after its name; continued lines have no name."""
    if message.get("windowed") is not None:
        name = "recent"
        for text in _windowed(message["windowed"]):
            yield name, text
            name = ""
    yield "validity", _cumulative(message)
    if (of_score := score_text(message)) is not None:
        yield "score", of_score
    if message.get("costs") is not None:
        yield "costs", cost_text(message["costs"])
    if message.get("promise") is not None:
        yield "promise", promise_text(message["promise"])
    if message.get("labels") is not None:
        yield from late_label_lines(message["labels"])
    if message.get("budget") is not None:
        yield "budget", budget_text(message["budget"])
    if message.get("features"):
        yield "features", feature_text(message["features"])


def feature_text(features: Mapping[str, Any]) -> str:
    """Return the number of features of each kind as text; unused features are named.

    Examples
    --------
    >>> kinds = {"age": {"kind": "number"}, "note": {"kind": "text"}, "land": {"kind": "category"}}
    >>> feature_text(kinds)
    '1 number, 1 category; set aside as text: note'
    """
    plural = {"number": "numbers", "boolean": "booleans", "category": "categories", "time": "times"}
    by_kind: dict[str | None, list[str]] = {}
    for name, feature in features.items():
        by_kind.setdefault(feature.get("kind"), []).append(name)
    counts = [
        f"{len(by_kind[kind])} {kind if len(by_kind[kind]) == 1 else kinds}"
        for kind, kinds in plural.items()
        if kind in by_kind
    ]
    parts = [", ".join(counts)] if counts else []
    if unused := by_kind.get("text", []):
        more = f" and {len(unused) - _MAX_NAMED:,} more" if len(unused) > _MAX_NAMED else ""
        parts.append(
            f"set aside as text: {', '.join(name[:40] for name in unused[:_MAX_NAMED])}{more}"
        )
    return "; ".join(parts)


def cost_text(costs: Figures) -> str:
    """Return the mean cost of the decisions, and of simple rules, as text.

    Examples
    --------
    >>> means = {"mean": 0.41, "by_label": 0.62, "always": {"bad": 0.7, "good": 1.5}}
    >>> cost_text({"scored": 1190} | means)
    '0.41 an example over 1,190; 0.62 by the most probable label, 0.7 always bad, 1.5 always good'
    """
    if costs["mean"] is None:
        return "nothing scored yet"
    others = [f"{costs['by_label']:.4g} by the most probable label"]
    others += [f"{mean:.4g} always {action}" for action, mean in costs["always"].items()]
    return f"{costs['mean']:.4g} an example over {costs['scored']:,}; {', '.join(others)}"


def budget_text(budget: Figures) -> str:
    """Return the counts of wanted labels as text.

    Examples
    --------
    >>> counts = {"wanted": 640, "labelled": 600, "missing": 0, "unasked": 134}
    >>> budget_text({"probability": 0.05} | counts)
    '5.0 % wanted: 640 labels, 600 came in time, 0 did not; 134 other labels are in no figure'
    >>> budget_text({"probability": 0.05} | counts | {"missing": 90}).partition(", 90 did not: ")[2]
    'figures hold for the others alone; 134 other labels are in no figure'
    """
    if budget["probability"] is None:
        return "no answers yet"
    labelled, missing = budget["labelled"], budget["missing"]
    lack = ": figures hold for the others alone" if missing > _MAX_MISSING * labelled else ""
    return (
        f"{100 * budget['probability']:.1f} % wanted: {counted(budget['wanted'], 'label')}, "
        f"{labelled:,} came in time, {missing:,} did not{lack}; "
        f"{counted(budget['unasked'], 'other label')} are in no figure"
    )


def _cumulative(message: Figures) -> str:
    own = message["headline"]["predicted"]
    if own["accuracy"] is None:
        return "nothing scored yet"
    return (
        f"{_accuracy(own)} over {message['scored']:,} scored of the first {message['n']:,} learned"
    )


def _windowed(windowed: Figures) -> Iterator[str]:
    overall = windowed["overall"]
    if not overall["scored"]:
        yield "nothing scored yet"
        return
    yield f"{_accuracy(overall)} over the last {overall['scored']:,} scored{_z(overall)}"
    parts = " ".join(
        f"{sign} {name} {overall[name]:.3f}"
        for sign, name in (("=", "miscalibration"), ("-", "discrimination"), ("+", "uncertainty"))
    )
    yield f"log loss {overall['log_loss']:.3f}, Brier score {overall['brier']:.3f} {parts}"
    if overall["calibration_error"] is not None:
        yield f"calibration error {overall['calibration_error']:.3f}, debiased"
    yield from _rare(windowed["classes"], overall["scored"])
    worst = _farthest_off([one for one in windowed["classes"] if one["label"] is not None])
    if worst is not None:
        yield (
            f"worst class {worst['label']}: frequency {worst['frequency']:.3f} against probability "
            f"{worst['probability']:.3f}{_z(worst)}"
        )
    slices = [
        {"name": name, "value": one["value"]} | one["scores"]
        for name, values in windowed["slices"].items()
        for one in values
    ]
    worst = _farthest_off(slices)
    if worst is not None:
        value = "any other" if worst["value"] is None else worst["value"]
        yield (
            f"worst slice {worst['name']} {value}: {_accuracy(worst)} over {worst['scored']:,}"
            f"{_z(worst)}"
        )


def _rare(classes: list[Figures], scored: int) -> Iterator[str]:
    """Yield recall and precision of the rarest class, if it has less than half an equal share."""
    found = [each for each in classes if each["label"] is not None and each["examples"]]
    rarest = min(found, key=lambda each: int(each["examples"]), default=None)
    if rarest is None or rarest["examples"] * 2 * len(found) >= scored:
        return
    from online_svm.metrics.binomial_interval import proportion

    taken, examples = rarest["predicted"], rarest["examples"]
    hits = round((rarest["accuracy"] or 0.0) * taken)
    recall, precision = proportion(hits, examples), proportion(hits, taken)
    yield f"rare class {rarest['label']}: recall {recall} of {examples:,}, precision {precision}"


def _accuracy(own: Figures) -> str:
    return (
        f"accuracy {own['accuracy']:.3f} against probability {own['probability']:.3f} in "
        f"[{own['lower']:.3f}, {own['upper']:.3f}]"
    )


def _z(own: Figures) -> str:
    """Return accuracy less probability in standard deviations, as the end of a line."""
    return "" if own["z"] is None else f" ({own['z']:+.1f} standard deviations)"


def _farthest_off(parts: list[Figures]) -> Figures | None:
    """Return the part with the greatest |z|; of equals the last, which is the positive class."""
    known = [part for part in reversed(parts) if part["z"] is not None]
    return max(known, key=lambda part: abs(float(part["z"])), default=None)


def pending_text(pending: Mapping[str, Any]) -> str:
    """Return the number of pending examples, and the age of the oldest unlabelled one if known."""
    total, unlabelled = pending["pending"], pending["unlabelled"]
    wait = "waits" if total == 1 else "wait"
    text = f"{counted(total, 'example')} {wait}, {unlabelled:,} of them without a label"
    seconds, ahead = pending.get("seconds"), pending.get("ahead_now")
    if unlabelled and seconds:
        text += f", the oldest for {_span(seconds)}"
    return f"{text}; {ahead:,} with a time far ahead of the feed's clock" if ahead else text


def pending_lines(pending: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the lines about pending examples for a feed without a report."""
    note = "those with one are learned when their horizon has passed, unless --maturity arrival"
    waits = pending["pending"] > pending["unlabelled"]
    return [("labels", pending_text(pending)), *([("", note)] if waits else [])]


def _span(seconds: float) -> str:
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if hours >= 48:
        return f"{hours // 24:,} days"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min {int(seconds) % 60} s"


def late_label_lines(labels: Figures) -> Iterator[tuple[str, str]]:
    """Yield the lines about delayed labels, each after its name; continued lines have no name."""
    counts = labels["counts"]
    yield "labels", pending_text(counts)
    outcomes = [f"{counts[name]:,} {words}" for name, words in _COUNTS if counts.get(name)]
    if outcomes:
        yield "", ", ".join(outcomes)
    for name, words in (("accuracy", "accuracy"), ("brier", "Brier score")):
        if labels[name] is not None:
            lower, estimate, upper = (labels[name][k] for k in ("lower", "estimate", "upper"))
            yield (
                "",
                f"{words} in the end from {lower:.3f} to {upper:.3f}; {estimate:.3f} if the "
                "probabilities are right",
            )
