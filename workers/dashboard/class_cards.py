"""Cards about the classes of interest and about decisions."""

from dataclasses import astuple

from typing_extensions import override

from workers.dashboard.answer_cards import ReliabilityCard
from workers.dashboard.card import TextCard
from workers.dashboard.class_figures import MIN_LABELLED, ClassDetection, detections
from workers.dashboard.curve_cards import CostCard
from workers.dashboard.reports import Report, as_dict
from workers.dashboard.shown_feed import Excerpt
from workers.dashboard.text import safe, table
from workers.reading.answers import number

_FEW_LABELLED = (
    f"Fewer than {MIN_LABELLED} of the answers read here have a label whose input is still kept."
)


class RareClassCard(ReliabilityCard):
    """The reliability diagram of the rarest class."""

    title = "Reliability of the rare class"
    words = (
        "The same for the probability of one class, the rarest of the labelled answers read here, "
        "whether or not it was the predicted label."
    )
    section = "rare-classes"

    @override
    def fill(self, excerpt: Excerpt) -> str:
        found = detections(excerpt.answers, excerpt.positive)
        if not found:
            return _FEW_LABELLED
        self.draw([astuple(each) for each in found[0].found.reliability])
        self.drawn.yaxis.axis_label = f"share of {found[0].label[:24]}"
        return ""


class DetectionCard(TextCard):
    """Recall, precision and areas of the rare classes, with intervals."""

    title = "How well the rare classes are found"
    words = (
        "Over the labelled answers read here. Recall: share of the class that was decided as such, "
        "by the action if there are costs, else by the label. Precision: share of such decisions "
        "that were right. The areas judge the probability alone, at every threshold: 1 is best; "
        "without any skill the first is .5 and the second the share of the class. In brackets: "
        "95 % intervals."
    )
    section = "rare-classes"
    is_wide = True

    @override
    def fill(self, excerpt: Excerpt) -> str:
        found = detections(excerpt.answers, excerpt.positive)
        if not found:
            return _FEW_LABELLED
        rows = ([safe(cell, 40) for cell in detection_row(each)] for each in found)
        return self.show(table(DETECTION_COLUMNS, rows))


DETECTION_COLUMNS = (
    "<class", "of answers", "recall", "precision", "sent to review", "area under ROC",
    "area under precision-recall",
)  # fmt: skip


def detection_row(each: ClassDetection) -> list[str]:
    """Return the cells of a class as text."""
    found = each.found
    return [
        each.label[:40], f"{found.positives:,} of {found.examples:,}", str(found.recall),
        str(found.precision), f"{each.reviewed:,}", str(found.roc_auc), str(found.pr_auc),
    ]  # fmt: skip


class ActionsCard(TextCard):
    """The actions that were taken, their cost, and the cost of simpler rules."""

    title = "Actions and rules"
    words = (
        "How often each action was taken, and what an example costs on average: by the actions "
        "taken, and by rules that ignore the features. The first should be the least."
    )
    section = "costs"

    @override
    def fill(self, excerpt: Excerpt) -> str:
        rows = action_rows(excerpt.last)
        if not rows:
            return CostCard.missing
        return self.show(table(ACTION_COLUMNS, ([safe(c, 40) for c in row] for row in rows)))


ACTION_COLUMNS = "<rule", "taken", "cost an example"


def action_rows(report: Report) -> list[list[str]]:
    """Return the decisions, the most probable label and each constant action, as cells of text."""
    costs = report.part("costs")
    taken, scored = as_dict(costs.get("taken")), number(costs.get("scored"))
    if not scored > 0:
        return []
    first = [
        ["the actions taken", f"{scored:,.0f}", f"{number(costs.get('mean')):.4g}"],
        ["always the most probable label", "", f"{number(costs.get('by_label')):.4g}"],
    ]
    return first + [
        [f"always {str(name)[:40]}", f"{number(taken.get(name)):,.0f}", f"{number(mean):.4g}"]
        for name, mean in as_dict(costs.get("always")).items()
    ]
