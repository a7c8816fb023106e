"""One number of semantics is computed: what carries another is refused with what to do."""

import numpy as np
import pytest

from online_svm.config import PredictorConfig, semantics
from online_svm.errors import InvalidConfig, InvalidSnapshot
from online_svm.predictor.frozen_predictor import FrozenPredictor
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.storage.state import pack, unpack

OLDER, NEWER = semantics.SEMANTICS - 1, semantics.SEMANTICS + 1
OURS = rf"\({semantics.SEMANTICS} is\)"
EARLIER = rf"is no longer computed {OURS}: begin anew with its input, as online-svm fork does"
UNKNOWN = rf"is not known here {OURS}: upgrade online-svm"


def test_what_is_begun_now_carries_the_number():
    semantics.check(semantics.SEMANTICS)
    assert PredictorConfig().semantics == semantics.SEMANTICS


@pytest.mark.parametrize(
    ("number", "why"),
    [*((number, EARLIER) for number in (1, 4, OLDER)),
     *((number, UNKNOWN) for number in (0, NEWER, 10**30, -1, True, 8.0, "8", None, [3]))],
)  # fmt: skip
def test_other_numbers_are_refused_with_what_to_do(number, why):
    with pytest.raises(InvalidConfig, match=why):
        semantics.check(number)


def test_another_number_is_no_setting():
    with pytest.raises(ValueError, match=f"semantics: semantics {OLDER} is no longer computed"):
        PredictorConfig(semantics=OLDER)
    with pytest.raises(ValueError, match=f"semantics: semantics {NEWER} is not known here"):
        PredictorConfig(semantics=NEWER)


def learned():
    """Return a predictor that has a model."""
    predictor = OnlinePredictor(PredictorConfig(window=40, refit_every=20))
    X = np.random.default_rng(0).normal(size=(50, 2))
    predictor.step_many(X, ["b" if x > 0 else "a" for x in X[:, 0]])
    return predictor


def with_config(data, change):
    """Return a snapshot whose configuration was changed in place."""
    header, arrays = unpack(data)
    change(header["config"])
    header.pop("format", None)
    return pack(header, arrays)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda config: config.update(semantics=OLDER),
            f"another version: semantics {OLDER} {EARLIER}",
        ),
        (lambda config: config.pop("semantics"), f"another version: semantics None {UNKNOWN}"),
        (
            lambda config: config.update(semantics=NEWER),
            f"another version: semantics {NEWER} {UNKNOWN}",
        ),
        (lambda config: config.update(novel=1), "another configuration"),
        (lambda config: config.pop("window"), "another configuration"),
    ],
    ids=["earlier", "unnumbered", "later", "a setting more", "a setting less"],
)
def test_a_snapshot_of_another_version_is_refused_and_changes_nothing(change, said):
    restored = learned()
    before = restored.snapshot()
    with pytest.raises(InvalidSnapshot, match=said):
        restored.restore(with_config(before, change))
    assert restored.snapshot() == before


def test_a_published_state_of_earlier_semantics_is_refused():
    predictor = learned()
    published = predictor.frozen().snapshot()
    older = with_config(published, lambda config: config.update(semantics=OLDER))
    with pytest.raises(InvalidSnapshot, match=f"another version: semantics {OLDER} {EARLIER}"):
        FrozenPredictor.restore(older, predictor.config)
