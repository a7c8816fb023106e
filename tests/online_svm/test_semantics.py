"""One number of semantics is computed: what carries another is refused with what to do."""

import numpy as np
import pytest

from online_svm.config import PredictorConfig, semantics
from online_svm.errors import InvalidConfig, InvalidSnapshot
from online_svm.predictor.answering_state import AnsweringState
from online_svm.predictor.combiner import Combiner, CombinerConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.storage.container import pack, unpack

EARLIER = r"is no longer computed \(4 is\): begin anew with its input, as online-svm fork does"
UNKNOWN = r"is not known here \(4 is\): upgrade online-svm"


def test_what_is_begun_now_carries_the_number_that_is_computed():
    assert PredictorConfig().semantics == semantics.SEMANTICS
    assert CombinerConfig(classes=("a", "b")).semantics == semantics.SEMANTICS
    semantics.check(semantics.SEMANTICS)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_earlier_numbers_are_refused_with_what_to_do(number):
    with pytest.raises(InvalidConfig, match=f"semantics {number} {EARLIER}"):
        semantics.check(number)
    with pytest.raises(ValueError, match=f"semantics: semantics {number} {EARLIER}"):
        PredictorConfig(semantics=number)


@pytest.mark.parametrize("number", [0, 5, 10**30, -1, True, 4.0, "4", None, [3]])
def test_numbers_that_are_not_known_are_refused_with_what_to_do(number):
    with pytest.raises(InvalidConfig, match=UNKNOWN):
        semantics.check(number)


def test_a_number_without_semantics_is_no_setting():
    with pytest.raises(ValueError, match="semantics 7 is not known here"):
        PredictorConfig(semantics=7)
    with pytest.raises(ValueError, match="semantics 7 is not known here"):
        CombinerConfig(classes=("a", "b"), semantics=7)


def learned():
    """Return a predictor that has a model."""
    predictor = OnlinePredictor(PredictorConfig(window=40, refit_every=20, refit_lag=0))
    X = np.random.default_rng(0).normal(size=(50, 2))
    predictor.step_many(X, ["b" if x > 0 else "a" for x in X[:, 0]])
    return predictor


def combined():
    """Return a combiner that has learned."""
    combiner = Combiner(CombinerConfig(classes=("a", "b")))
    for label in "abbab" * 4:
        combiner.step([[0.5, 0.1, 0.4], [0.2, 0.3, 0.5]], label)
    return combiner


def with_config(data, change):
    """Return a snapshot whose configuration was changed in place."""
    header, arrays = unpack(data)
    change(header["config"])
    header.pop("format", None)
    return pack(header, arrays)


@pytest.mark.parametrize("make", [learned, combined])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda config: config.update(semantics=2), f"another version: semantics 2 {EARLIER}"),
        (lambda config: config.pop("semantics"), f"another version: semantics 1 {EARLIER}"),
        (lambda config: config.update(semantics=9), f"another version: semantics 9 {UNKNOWN}"),
        (lambda config: config.update(novel=1), "another configuration"),
        (lambda config: config.pop("window"), "another configuration"),
    ],
    ids=["earlier", "unnumbered", "later", "a setting more", "a setting less"],
)
def test_a_snapshot_of_another_version_is_refused_and_changes_nothing(make, change, said):
    restored = make()
    before = restored.snapshot()
    with pytest.raises(InvalidSnapshot, match=said):
        restored.restore(with_config(before, change))
    assert restored.snapshot() == before


def test_a_published_state_of_earlier_semantics_is_refused():
    predictor = learned()
    published = predictor.answering()
    older = with_config(published, lambda config: config.update(semantics=2))
    with pytest.raises(InvalidSnapshot, match=f"another version: semantics 2 {EARLIER}"):
        AnsweringState.restore(older, predictor.config)
