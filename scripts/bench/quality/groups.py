"""Tables over the streams of two and of more classes: means, and the headline beside rivals."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from scripts.bench.quality.methods import PEERS
from scripts.bench.quality.stream_quality import Quality
from scripts.bench.quality.streams import HELD_OUT, MEMBERS_COMPARED, STREAMS
from scripts.bench.report import Result, Values
from scripts.tables import printed

GROUPS = {"two classes": True, "more classes": False}

HEADLINE = "headline"
RIVALS = (
    "rolling SVC, sigmoid",
    "rolling boosted trees, calibrated",
    "rolling LR",
    "river ARF",
    "river AMF",
)
"""The goal is to be best, or near it, among these."""

NEAR = 0.003
"""So much more log loss than the best is near it."""

_MEANS: Mapping[str, Callable[[Quality], float | None]] = {
    "brier": lambda one: one.mean("brier"),
    "accuracy": lambda one: one.mean("accuracy"),
    "auc": lambda one: one.mean("auc"),
    "calibration_error": lambda one: one.calibration_error,
}
_HEADINGS = ("log loss", "Brier", "accuracy", "AUC", "calib.", "us")


def of_group(found: Sequence[Quality], group: str) -> list[Result]:
    """Return the tables of a group, and their values; none where nothing of it was measured.

    The second table is there where the headline and a rival were measured.
    """
    inside = _inside(found, group)
    rows = means(found, group)
    made = [Result(row, []) for row in rows]
    if rows:
        made.append(Result({}, [_of_means(group, rows)]))
    beside = [one for name in _streams(inside) if (one := beside_rivals(inside, name))]
    if beside:
        made.append(_of_rivals(group, beside))
    return made


def means(found: Sequence[Quality], group: str) -> list[Values]:
    """Return the mean of each row that was measured on every stream of a group.

    The standard error of a mean is that over shuffles; a stream with one order adds nothing to it.
    """
    rows: dict[str, list[Quality]] = {}
    for one in _inside(found, group):
        rows.setdefault(one.row, []).append(one)
    most = max(map(len, rows.values()), default=0)
    return [
        {
            "group": group,
            "row": row,
            "streams": most,
            "mean_log_loss": statistics.fmean(one.log_loss for one in whole),
            "log_loss_error": math.hypot(*(one.log_loss_error or 0.0 for one in whole)) / most,
            **{f"mean_{name}": _mean(map(of, whole)) for name, of in _MEANS.items()},
            "mean_microseconds": statistics.fmean(one.microseconds for one in whole),
        }
        for row, whole in rows.items()
        if len(whole) == most
    ]


def beside_rivals(found: Sequence[Quality], stream: str) -> Values | None:
    """Return the log loss of the headline on a stream beside the least of `RIVALS` and of all.

    None where the headline or the rivals were not measured. Other rows of ours are no rivals.
    """
    rows = {one.row: one for one in found if one.stream == stream}
    ours = rows.get(HEADLINE)
    rivals = [rows[name] for name in RIVALS if name in rows]
    if ours is None or not rivals:
        return None
    peers = [one for name, one in rows.items() if name in PEERS]
    best, best_of_all = (min(some, key=lambda one: one.log_loss) for some in (rivals, peers))
    return {
        "stream": stream,
        "seen": _seen(stream),
        "log_loss": ours.log_loss,
        "log_loss_error": ours.log_loss_error,
        "best": best.log_loss,
        "best_error": best.log_loss_error,
        "best_row": best.row,
        "best_of_all": best_of_all.log_loss,
        "best_of_all_row": best_of_all.row,
        "near": ours.log_loss <= best.log_loss + NEAR,
        "near_of_all": ours.log_loss <= best_of_all.log_loss + NEAR,
    }


def _seen(stream: str) -> str:
    """Return when a stream was looked at."""
    if stream in MEMBERS_COMPARED:
        return "members"
    return "held out" if stream in HELD_OUT else "choices"


def _inside(found: Sequence[Quality], group: str) -> list[Quality]:
    return [one for one in found if (STREAMS[one.stream].n_classes == 2) is GROUPS[group]]


def _streams(found: Sequence[Quality]) -> list[str]:
    return list(dict.fromkeys(one.stream for one in found))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _of_means(group: str, rows: Sequence[Values]) -> str:
    cells = [
        [
            one["row"],
            _with_error(one["mean_log_loss"], one["log_loss_error"]),
            *(_shown(one[f"mean_{name}"]) for name in _MEANS),
            f"{one['mean_microseconds']:,.0f}",
        ]
        for one in sorted(rows, key=lambda one: float(one["mean_log_loss"]))
    ]
    title = f"{group}: means over {rows[0]['streams']} streams"
    return printed(title, ["", *_HEADINGS], cells)


def _of_rivals(group: str, beside: Sequence[Values]) -> Result:
    cells = [
        [
            one["stream"],
            one["seen"],
            _with_error(one["log_loss"], one["log_loss_error"]),
            _with_error(one["best"], one["best_error"]),
            one["best_row"].removeprefix("rolling "),
            f"{one['best_of_all']:.4f}",
            one["best_of_all_row"].removeprefix("rolling "),
        ]
        for one in beside
    ]
    names = ", ".join(name.removeprefix("rolling ") for name in RIVALS)
    counts: dict[str, Any] = {
        name: sum(one[name] for one in beside) for name in ("near", "near_of_all")
    }
    lines = [
        printed(
            f"{group}: log loss of the headline, of the best of {names}, and of the best of all",
            ["", "looked at for", HEADLINE, "best rival", "", "best", ""],
            cells,
        ),
        "looked at for: choices of settings; members, their first comparison; or held out",
        f"headline best, or within {NEAR} of the best: {counts['near']} of {len(beside)}; "
        f"of all rows: {counts['near_of_all']}",
    ]
    return Result({"group": group, "streams": len(beside)} | counts | {"beside": beside}, lines)


def _with_error(mean: float, error: float | None) -> str:
    return f"{mean:.4f}" + (f" ± {error:.4f}" if error else "")


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
