"""Members of a committee in several learners: together they are the committee of one."""

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.refit.committee.progressive_scores import ProgressiveScores
from online_svm.refit.learner import Learner
from online_svm.refit.task import RefitTask

MEMBERS = ("rbf", "cauchy", "logistic", "rbf-wide")


def tasks(n_classes):
    """Yield refits of a window of 120 that rolls on; one class comes later."""
    generator = np.random.default_rng(n_classes)
    X, codes = generator.normal(size=(400, 3)), generator.integers(0, n_classes, 400)
    codes[:100] %= 2
    sent = 0
    for freeze in range(40, 400, 40):
        start = max(0, freeze - 120)
        known = 2 if freeze <= 100 else n_classes
        yield RefitTask(start, freeze, sent, X[sent:freeze], codes[start:freeze], np.ones(known))
        sent = freeze


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("parts", [[(0, 2), (1, 3)], [(3,), (0, 1, 2)], [(2,), (3,), (0,), (1,)]])
def test_parts_of_a_committee_give_the_results_and_states_of_the_whole(n_classes, parts):
    config = PredictorConfig(classes=tuple("abcd"[:n_classes]), committee=MEMBERS, window=120)
    whole = Learner(config)
    first, *others = [Learner(config, part) for part in parts]
    for number, task in enumerate(tasks(n_classes)):
        said = [ProgressiveScores.from_state(other.say(task).state()) for other in others]
        result = first.refit(task, lambda said=said: said)
        assert result.state() == whole.refit(task).state()
        state = first.state(dict(zip(parts[1:], [other.state() for other in others], strict=True)))
        assert state == whole.state()
        if number % 3 == 1:  # each goes on from the state of all
            first, *others = [Learner.from_state(state, config, part) for part in parts]


def test_a_learner_without_a_committee_has_no_members_to_speak_for():
    learner = Learner(PredictorConfig(committee="single"), ())
    with pytest.raises(ValueError, match="no members"):
        learner.say(next(tasks(2)))
