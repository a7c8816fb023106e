"""The figures as a table for people: a line for each method, in 80 columns."""

from collections.abc import Iterator, Sequence
from functools import partial
from textwrap import wrap

from online_svm.config import SCORE
from workers.offline.backtest.money import best_by_money
from workers.offline.backtest.prequential import HEADLINE
from workers.offline.backtest.result import SURE_STANDARD_ERRORS, EntryCounts, Scores
from workers.offline.backtest.run import Finished
from workers.text import counted, share

WIDTH = 80

_wrapped = partial(wrap, width=WIDTH, initial_indent="  ", subsequent_indent="    ")

_NAME = 21
_COLUMNS = (("log loss", 9), ("vs base", 9), ("Brier", 7), ("acc.", 6), ("AUC", 6), ("calib.", 7))
_COVERAGE = (("cover", 9), ("width", 6))

LEGEND = (
    f"vs base  log loss less that of {HEADLINE} in the first configuration",
    "calib.   calibration error beyond chance: 0 where chance alone explains it",
    "cover    % of answers in bins whose frequency lies in the mean interval; in",
    "         brackets the same if every probability were right",
)


def table(finished: Sequence[Finished]) -> list[str]:
    """Return the lines of the table, the base first."""
    headings = "".join(f"{text:>{width}}" for text, width in (*_COLUMNS, *_COVERAGE))
    base = finished[0].result.methods.get(HEADLINE)
    lines = [" " * _NAME + headings]
    for each in finished:
        lines += _heading(each)
        for name, scores in each.result.methods.items():
            lines.append(f"  {name:<{_NAME - 2}}{_figures(scores, base)}".rstrip())
    return [
        *lines, "", *_best(finished), *_given_score(finished), *_money(finished),
        *_older_rows(finished), *LEGEND,
    ]  # fmt: skip


def _headline_loss(finished: Finished) -> float:
    return finished.result.methods[HEADLINE].log_loss


def _best(finished: Sequence[Finished]) -> Iterator[str]:
    """Yield the configuration with the least log loss, if several are compared."""
    first = finished[0]
    scored = [each for each in finished if HEADLINE in each.result.methods]
    if first not in scored or len(scored) == 1:
        return
    best = min(scored, key=_headline_loss)
    if best is first:
        yield from _wrapped(f"least log loss of {HEADLINE}: {first.configuration.name}")
    else:
        gain = _headline_loss(first) - _headline_loss(best)
        cost = best.result.microseconds / first.result.microseconds
        yield from _wrapped(
            f"least log loss of {HEADLINE}: {best.configuration.name}, {gain:.4f} below "
            f"{first.configuration.name}, at {cost:.1f} times its time"
        )
    yield ""


def _given_score(finished: Sequence[Finished]) -> Iterator[str]:
    """Yield whether calibrating the given score would have paid, if there was one."""
    scored = [each for each in finished if SCORE in each.result.methods]
    if not scored:
        return
    best = min(scored, key=_headline_loss)
    stated, ours = best.result.methods[SCORE].log_loss, _headline_loss(best)
    paid = "would have paid" if ours < stated else "would not have paid"
    ours_of = f"{ours:.4f} ({best.configuration.name})"
    yield from _wrapped(
        f"Calibrating the score {paid}: log loss {stated:.4f} as it came, {ours_of}"
    )
    yield ""


def _money(finished: Sequence[Finished]) -> Iterator[str]:
    """Yield the cost of each configuration, what it saves, and which one to take."""
    names = [each.configuration.name for each in finished]
    costs = finished[0].configuration.predictor.costs
    comparable = [
        each.result.money if each.configuration.predictor.costs == costs else None
        for each in finished
    ]
    base = comparable[0]
    if base is None:
        return
    rule = min(base.always, key=lambda action: base.always[action])
    yield from _wrapped(
        f"cost an example: {names[0]} {base.mean:.4g}, by the most probable label "
        f"{base.by_label:.4g}, always {rule} {base.always[rule]:.4g}"
    )
    chosen, savings = best_by_money(comparable)
    for name, money, saved in list(zip(names, comparable, savings, strict=True))[1:]:
        if money is None:
            yield from _wrapped(f"{name}: not compared by cost, because its costs are others")
        elif saved is None:
            yield from _wrapped(f"{name} {money.mean:.4g}: too few examples to compare")
        else:
            yield from _wrapped(
                f"{name} {money.mean:.4g}: saves {saved.mean:+.4g} an example, at 95 % between "
                f"{saved.lower:+.4g} and {saved.upper:+.4g}"
            )
    if len(finished) > 1:
        why = "saves most" if chosen else "no other is shown to cost less"
        yield from _wrapped(f"Take {names[chosen]}: {why}.")
    if base.mean >= base.always[rule] and not chosen:
        yield from _wrapped(f"It costs no less than always {rule}.")
    yield ""


def _older_rows(finished: Sequence[Finished]) -> Iterator[str]:
    """Yield the finding on older rows, if it is significant and there is one configuration."""
    found = finished[0].result.older_rows
    if len(finished) > 1 or found is None:
        return
    if not found.helps and found.errors > -SURE_STANDARD_ERRORS:
        return
    rows = "all rows" if found.is_all else f"the last {found.most:,} rows"
    losses = (
        f"a logistic regression on {rows} loses {share(found.older_loss)} an example, on the last "
        f"{found.window:,} {share(found.window_loss)} (by {abs(found.errors):.1f} standard errors)"
    )
    if found.helps:
        setting = "all:window=none" if found.is_all else f"long:window={found.most}"
        yield from _wrapped(f"Older rows would help: {losses}; try --set {setting}.")
    else:
        yield from _wrapped(f"Older rows would not help: {losses}.")
    yield ""


def _heading(finished: Finished) -> Iterator[str]:
    counts, cost = finished.result.counts, finished.result.microseconds
    name, kept = finished.configuration.name, " (kept)" if finished.was_kept else ""
    yield f"{name}{kept}: {counted(counts.scored, 'answer')} scored, {cost:,.1f} us an entry"
    if others := _not_scored(counts):
        yield from _wrapped(f"not scored: {', '.join(others)}")
    if counts.reason is not None:
        yield from _wrapped(f"the first rejected: {counts.reason}")


def _not_scored(counts: EntryCounts) -> list[str]:
    kinds = {
        "warming up": counts.warming,
        "without label": counts.unlabelled,
        "repeated": counts.repeated,
        "rejected": sum(counts.rejected.values()),
    }
    return [f"{count:,} {kind}" for kind, count in kinds.items() if count]


def _figures(scores: Scores, base: Scores | None) -> str:
    difference = None if base is None else scores.log_loss - base.log_loss
    texts = (
        _decimals(scores.log_loss, 4), "" if difference is None else f"{difference:+.4f}",
        _decimals(scores.brier, 4), _decimals(scores.accuracy, 3), _decimals(scores.auc, 3),
        _decimals(scores.calibration_error, 3), _coverage(scores), _decimals(scores.width, 3),
    )  # fmt: skip
    widths = (width for _, width in (*_COLUMNS, *_COVERAGE))
    return "".join(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))


def _coverage(scores: Scores) -> str:
    if scores.coverage is None or scores.coverage_of_perfect is None:
        return ""
    return f"{100 * scores.coverage:.0f}({100 * scores.coverage_of_perfect:.0f})"


def _decimals(value: float | None, places: int) -> str:
    return "" if value is None else f"{value:.{places}f}"
