"""Platt (1999): what was printed beside what is measured, and the paper's statements tried."""

from typing import Any

from scripts.papers.platt.tasks import PAPER_PAGES, TASKS, WEB_PAGES, PlattTask
from scripts.papers.report import claim, row, table

Result = dict[str, Any]

PRINTED_THRESHOLD = -0.1722  # of Adult quadratic: P = 1/2 at this score
LEFT_OUT = "left out of --quick: its training takes minutes"
QUANTITIES = (
    ("errors of the raw machine", "raw_errors"),
    ("errors with the sigmoid", "errors"),
    ("-log p", "loss"),
)


def rows(tasks: list[Result]) -> list[Result]:
    """Set the printed values of every task beside the measured ones and their range."""
    measured = {entry["name"]: entry for entry in tasks}
    return [one for task in TASKS for one in _rows(task, measured.get(task.name))]


def _rows(task: PlattTask, entry: Result | None) -> list[Result]:
    rows = [
        _row(task, entry, text, key, printed)
        for (text, key), printed in zip(QUANTITIES, task.printed, strict=True)
    ]
    if task.name == "Adult quadratic":
        rows.append(_row(task, entry, "score at which P = 1/2", "threshold", PRINTED_THRESHOLD))
    return rows


def _row(task: PlattTask, entry: Result | None, text: str, key: str, printed: float) -> Result:
    measured = spread = None
    if entry is not None:
        measured = (entry | entry["sigmoids"]["three-fold"])[key]
        spread = entry["spread"].get(key) if entry["partitions"] > 1 else None
    return row(f"{task.name}: {text}", printed, measured, _reason(task, measured), range=spread)


def _reason(task: PlattTask, measured: float | None) -> str | None:
    if measured is None:
        return LEFT_OUT if task.is_available else task.note
    if task.note is None:
        return None
    return f"{task.note}; scaled to the paper's size {measured * PAPER_PAGES / WEB_PAGES:.0f}"


def claims(tasks: list[Result]) -> list[Result]:
    """Try what the paper says on the measurements; see `entries.claim`."""
    quadratic = [entry for entry in tasks if entry["name"].endswith("quadratic")]
    linear = [entry for entry in tasks if entry["name"].endswith("linear")]
    return [
        claim(
            "the sigmoid's threshold makes fewer errors than zero does",
            "section 3.1, Adult quadratic",
            {e["name"]: _errors(e) < e["raw_errors"] for e in quadratic[:1]},
        ),
        claim(
            "for non-linear machines a sigmoid fitted on the training scores is worse",
            "section 2.2",
            {e["name"]: _gain(e) > 0.0 for e in quadratic},
        ),
        claim(
            "for linear machines it does nearly as well: within 1 % of -log p",
            "section 2.2",
            {e["name"]: _gain(e) < 0.01 * _loss(e) for e in linear},
        ),
        claim(
            "Newton's method and the paper's own iteration reach the same loss within 1e-6",
            "appendix",
            {e["name"]: _gap(e) < 1e-6 for e in tasks},
        ),
    ]


def _errors(entry: Result) -> int:
    return int(entry["sigmoids"]["three-fold"]["errors"])


def _loss(entry: Result) -> float:
    return float(entry["sigmoids"]["three-fold"]["loss"])


def _gain(entry: Result) -> float:
    """Return by how much cross-validated scores reduce -log p against training scores."""
    return float(entry["sigmoids"]["training scores"]["loss"]) - _loss(entry)


def _gap(entry: Result) -> float:
    newton = float(entry["sigmoids"]["three-fold"]["fit_loss"])
    return abs(float(entry["model_trust"]["fit_loss"]) - newton) / newton


def training_sets(tasks: list[Result]) -> Result:
    """Return the table of what the sigmoid is fitted on."""
    return table(
        "What the sigmoid is fitted on",
        ["task", "scores", "A", "B", "errors", "-log p"],
        [
            [entry["name"], source, *(sigmoid[key] for key in ("A", "B", "errors", "loss"))]
            for entry in tasks
            for source, sigmoid in entry["sigmoids"].items()
        ],
    )
