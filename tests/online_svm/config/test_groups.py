"""Settings that cannot work are refused, and the setting is named."""

import pytest

from online_svm.config import PredictorConfig

TWO = {"classes": ("a", "b")}
PSVM = TWO | {"learner": "psvm", "features": 3}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (TWO | {"class_weight": {"c": 2.0}}, "class_weight"),
        (TWO | {"class_weight": {"a": 1e308}}, "class_weight"),
        (PSVM | {"classes": None}, "classes|learner"),
        (PSVM | {"classes": ("a", "b", "c")}, "classes|learner"),
        ({"horizon": 0, "maturity": "arrival"}, "maturity: "),
        ({"horizon": 100, "max_pending": 99}, "horizon: "),
        ({"slices": ("a", "a")}, "a name is given twice"),
        ({"slices": tuple(map(str, range(17)))}, "the limit is 16"),
        ({"slices": ("a" * 65,)}, "at most 64"),
        ({"slices": ("country",), "metrics_window": None}, "set metrics_window"),
        ({"on_drift": "refit", "monitors": "off"}, "no alarms to act on"),
        ({"on_drift": "refit", "window": None}, "take on_drift = 'reset'"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(settings, told):
    with pytest.raises(ValueError, match=told):
        PredictorConfig.model_validate(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"classes": ["a\0b", "c"]}, {"features": ["a", "b\0"]}, {"features": {"\0": "number"}},
        {"slices": ["s\0"]}, {"class_weight": {"a\0": 2.0}},
    ],
)  # fmt: skip
def test_a_name_that_no_entry_may_contain_is_refused(settings):
    with pytest.raises(ValueError, match="contains NUL"):
        PredictorConfig(**settings)
