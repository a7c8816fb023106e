"""The table of experts: the lines whose probabilities are averaged, and those that correct it."""

from collections.abc import Callable, Mapping

from online_svm.config import PredictorConfig
from online_svm.predictor.expert import Expert
from online_svm.predictor.label_history import LabelHistory
from online_svm.predictor.pair_prediction import PairPrediction
from online_svm.predictor.recent_stacks import STACKS
from online_svm.predictor.score_experts import ScoreExperts
from online_svm.predictor.simple_experts import SimpleExperts

EXPERTS: dict[str, Callable[[PredictorConfig, int], Expert | None]] = {
    "simple": lambda _config, n_classes: SimpleExperts(n_classes),
    "scores": lambda config, _n_classes: ScoreExperts.of(config),
    "history": lambda _config, n_classes: LabelHistory(n_classes),
}
"""What makes each expert that spans models, by the name of its state.

It takes the settings and the number of classes; the result is None where the settings ask for no
such expert. Experts answer in this order, after those of the model and the recent stacks.
"""


def groups_of(n_known: int, experts: Mapping[str, Expert]) -> dict[str, str]:
    """Return the group of each averaged expert by name, in their order.

    `n_known`: known classes, which decide what experts a model has.
    `experts`: those that span models.
    """
    of_model = PairPrediction.outputs
    if n_known > 2:
        # Lazy import: a worker with two classes starts without these kernels.
        from online_svm.predictor.joint_prediction import JointPrediction

        of_model = JointPrediction.outputs
    groups = dict.fromkeys(of_model, "model") | dict.fromkeys(STACKS, "stack")
    for expert in experts.values():
        if not expert.corrects:
            groups |= dict.fromkeys(expert.outputs, expert.group)
    return groups
