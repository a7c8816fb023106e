"""The table of experts, and the committee as one of them."""

from collections.abc import Callable, Mapping, Sequence

from online_svm.config import PredictorConfig
from online_svm.predictor.expert import Expert, RowsToLearn
from online_svm.predictor.label_history import LabelHistory
from online_svm.predictor.score_experts import STATED, ScoreExperts
from online_svm.predictor.simple_experts import BASE_RATE, SimpleExperts
from online_svm.types import Floats


class Committee(Expert):
    """The committee's prediction; before there is a model, the given score or the base rate."""

    outputs = ("committee",)

    def answer(self, rows: RowsToLearn, before: Mapping[str, Floats]) -> Sequence[Floats]:
        """Return the prediction."""
        return [before.get(STATED, before[BASE_RATE]) if rows.point is None else rows.point]


EXPERTS: dict[str, Callable[[PredictorConfig, int], Expert | None]] = {
    "simple": lambda _config, n_classes: SimpleExperts(n_classes),
    "scores": lambda config, _n_classes: ScoreExperts.of(config),
    "committee": lambda _config, _n_classes: Committee(),
    "history": lambda _config, n_classes: LabelHistory(n_classes),
}
"""What makes each expert from the settings and the number of classes, by the name of its state.

The result is None where the settings ask for no such expert. Experts answer in this order.
"""
