"""Streams of examples that change, and predictors that are cheap enough to watch them."""

import numpy as np

from online_svm.predictor.protocol import ProtocolConfig

CHEAP = {
    "classes": ("a", "b"), "committee": "single", "taxonomy": "class", "window": 400,
    "refit_every": 100, "refit_lag": 0, "maps": ("platt",), "gamma": 0.5,
    "interval_level": None,
}  # fmt: skip
"""Settings of a predictor that answers thousands of examples in a second."""

CHEAP_FEED = {name: value for name, value in CHEAP.items() if name != "refit_lag"}
"""The same of a feed, whose lag is no setting."""


def cheap(**changes):
    return ProtocolConfig.model_validate(CHEAP | changes)


def inverted(count, first, last, seed=0):
    """Return rows and labels of two noisy classes; labels first ... last - 1 are inverted."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 3)).round(4)
    is_b = X[:, 0] + 0.5 * generator.normal(size=count) > 0
    is_b[first:last] = ~is_b[first:last]
    return X, np.where(is_b, "b", "a").tolist()
