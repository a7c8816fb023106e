"""Cards about the classes of interest and about decisions."""

import math
from collections.abc import Sequence
from dataclasses import astuple

from typing_extensions import override

from workers.dashboard.answer_cards import ReliabilityCard
from workers.dashboard.card import TextCard
from workers.dashboard.class_figures import MIN_LABELLED, ClassDetection, detections
from workers.dashboard.curve_cards import CostCard
from workers.dashboard.section import Section
from workers.dashboard.shown_feed import Excerpt
from workers.dashboard.text import whole
from workers.reading.answers import as_object, number
from workers.reading.facts import cost_rules
from workers.text import four_digits

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

    @staticmethod
    @override
    def sections(excerpt: Excerpt) -> Sequence[Section] | str:
        found = detections(excerpt.answers, excerpt.positive)
        columns = (
            "<class", "of answers", "recall", "precision", "sent to review", "area under ROC",
            "area under precision-recall",
        )  # fmt: skip
        return [Section((), columns, list(map(_detected, found)))] if found else _FEW_LABELLED


def _detected(each: ClassDetection) -> list[str]:
    """Return the cells of a class."""
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
    section = "facts"

    @staticmethod
    @override
    def sections(excerpt: Excerpt) -> Sequence[Section] | str:
        costs = excerpt.last.part("costs")
        taken, scored = as_object(costs.get("taken")), number(costs.get("scored"))
        if not scored > 0:
            return CostCard.missing
        counts = {f"always {name}": number(count) for name, count in taken.items()}
        rows = [
            [rule, whole(counts.get(rule, math.nan)), four_digits(mean)]
            for rule, mean in cost_rules(costs)
        ]
        return [Section((), ("<rule", "answers with this action", "cost an example"), rows)]
