"""What is accepted as features and as a label, and how the rest is named."""

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.stream.schema import FeatureSchema


@pytest.mark.parametrize(
    ("x", "code"),
    [
        ([1.0, float("nan")], "not_finite"), ([1.0, float("inf")], "not_finite"),
        ([1.0, -float("inf")], "not_finite"), ([1.0, 10**400], "not_finite"),
        ([1.0, 1e101], "out_of_range"), ([1.0, 5e-324], "out_of_range"), ([1.0], "dimension"),
        ([1.0, 2.0, 3.0], "dimension"), ([], "dimension"), ([1.0, "2"], "unsupported"),
        ([1.0, True], "unsupported"), ([1.0, {}], "unsupported"), ([1.0, 2j], "unparsable"),
        ([1.0, [2.0]], "unsupported"), ("ab", "unparsable"), (None, "unparsable"),
        (np.ones((1, 2)), "unparsable"), ([1.0, None], "missing_feature"),
        ({"a": 1.0, "b": 2.0}, "unparsable"),
    ],
)  # fmt: skip
def test_a_bad_array_is_rejected_with_its_code(x, code):
    with pytest.raises(InvalidExample) as caught:
        FeatureSchema(PredictorConfig(features=2)).row(x)
    assert caught.value.code == code
    assert caught.value.reason


@pytest.mark.parametrize(
    ("x", "code"),
    [({"a": 1.0}, "missing_feature"), ({"a": 1.0, "b": 1.0, "c": 1.0}, "unknown_feature")],
)
def test_a_bad_named_example_is_rejected_with_its_code(x, code):
    with pytest.raises(InvalidExample) as caught:
        FeatureSchema(PredictorConfig(features=("b", "a"))).row(x)
    assert caught.value.code == code


@pytest.mark.parametrize("x", [{"a": 1.0}, {"a": 1.0, "b": None}, [1.0, None]])
def test_a_missing_value_is_rejected_with_the_setting_that_takes_it(x):
    with pytest.raises(InvalidExample) as caught:
        FeatureSchema(PredictorConfig(features=("b", "a"))).row(x)
    assert (
        caught.value.reason == "feature 'b' is missing; send a number, or set missing to \"mean\""
    )


def test_named_features_are_ordered_by_name_whatever_the_order_sent():
    unknown = FeatureSchema(PredictorConfig())
    schema = unknown.of_example({"z": 1.0, "a": 2.0})
    assert unknown.dimension is None
    assert schema.names == ("a", "z")
    assert schema.row({"z": 1.0, "a": 2.0}).tolist() == [2.0, 1.0]


class Counted(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other):
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("is_declared", [True, False])
@pytest.mark.parametrize("is_known", [True, False])
def test_names_are_compared_a_few_times_each_in_whatever_order_they_come(is_declared, is_known):
    names = tuple(f"f{i:04d}" for i in range(1000))
    schema = FeatureSchema(PredictorConfig(features=names if is_declared else None))
    x = {Counted(name): 1.0 for name in reversed(names)}
    if not is_known:
        x[Counted("other")] = 1.0
    Counted.comparisons = 0
    if is_known or not is_declared:
        assert len(schema.row(x)) == len(x)
    else:
        with pytest.raises(InvalidExample, match="'other' is unknown"):
            schema.row(x)
    assert Counted.comparisons <= 5 * len(x)


@pytest.mark.parametrize("x", [{"c": 1e200}, {"c": 1e200, "a": 1.0}, {"a": None, "c": 1e200}])
def test_a_value_out_of_range_is_named_also_where_other_names_are_missing(x):
    schema = FeatureSchema(PredictorConfig(features=("a", "b", "c"), missing="mean"))
    with pytest.raises(InvalidExample, match=r"feature 'c' is 1e\+200"):
        schema.row(x)


def test_a_missing_value_is_kept_as_nan_where_the_mean_will_replace_it():
    schema = FeatureSchema(PredictorConfig(features=("a", "b"), missing="mean"))
    assert np.isnan(schema.row({"a": None})).tolist() == [True, True]
    assert np.isnan(schema.row([1.0, None])).tolist() == [False, True]


def test_the_largest_and_smallest_accepted_sizes_pass():
    values = [1e100, -1e100, 2.3e-308, 0.0, -0.0]
    assert FeatureSchema(PredictorConfig()).row(values).tolist() == values


@pytest.mark.parametrize(
    ("changes", "y", "expected"),
    [
        ({}, "1.0", "1.0"), ({}, 1, "1"), ({}, np.int64(-3), "-3"),
        ({"labels": "integer"}, "01", "1"), ({"labels": "integer"}, " -7", "-7"), ({}, None, None),
    ],
)  # fmt: skip
def test_a_label_has_one_text(changes, y, expected):
    assert FeatureSchema(PredictorConfig(**changes)).label(y) == expected


@pytest.mark.parametrize(
    ("changes", "y"),
    [
        ({"classes": ("a", "b")}, "c"), ({"labels": "integer"}, "1.0"),
        ({"labels": "integer"}, "9" * 5000), ({}, ""), ({}, "x" * 257), ({}, 1.0), ({}, True),
        ({}, ["a"]),
    ],
)  # fmt: skip
def test_a_bad_label_is_rejected(changes, y):
    with pytest.raises(InvalidExample) as caught:
        FeatureSchema(PredictorConfig(**changes)).label(y)
    assert caught.value.code == "label"
