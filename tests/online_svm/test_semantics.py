"""Three numbers of semantics are computed: what carries another is refused with what to do."""

from functools import partial

import numpy as np
import pytest

from online_svm.config import PredictorConfig, semantics
from online_svm.errors import InvalidConfig, InvalidSnapshot
from online_svm.predictor.combiner import Combiner, CombinerConfig
from online_svm.predictor.frozen_predictor import FrozenPredictor
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.storage.container import pack, unpack

EARLIER = (
    r"is no longer computed \(4, 5 and 6 are\): begin anew with its input, as online-svm fork does"
)
UNKNOWN = r"is not known here \(4, 5 and 6 are\): upgrade online-svm"


def test_what_is_begun_now_carries_the_newest_number():
    assert PredictorConfig().semantics == semantics.SEMANTICS
    assert CombinerConfig(classes=("a", "b")).semantics == semantics.SEMANTICS


@pytest.mark.parametrize("number", semantics.COMPUTED)
def test_numbers_that_are_computed_are_taken_and_kept(number):
    semantics.check(number)
    assert PredictorConfig(semantics=number).semantics == number
    predictor = OnlinePredictor(PredictorConfig(semantics=number))
    with pytest.raises(InvalidSnapshot, match="another configuration"):
        predictor.restore(
            OnlinePredictor(PredictorConfig(semantics=5 if number == 4 else 4)).snapshot()
        )


@pytest.mark.parametrize(
    ("number", "why"),
    [*((number, EARLIER) for number in (1, 2, 3)),
     *((number, UNKNOWN) for number in (0, 7, 10**30, -1, True, 4.0, "4", None, [3]))],
)  # fmt: skip
def test_other_numbers_are_refused_with_what_to_do(number, why):
    with pytest.raises(InvalidConfig, match=why):
        semantics.check(number)


def test_a_number_without_semantics_is_no_setting():
    for made in (PredictorConfig, partial(CombinerConfig, classes=("a", "b"))):
        with pytest.raises(ValueError, match="semantics: semantics 7 is not known here"):
            made(semantics=7)


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
    published = predictor.frozen().snapshot()
    older = with_config(published, lambda config: config.update(semantics=2))
    with pytest.raises(InvalidSnapshot, match=f"another version: semantics 2 {EARLIER}"):
        FrozenPredictor.restore(older, predictor.config)
