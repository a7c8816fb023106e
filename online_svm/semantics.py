"""Versions of what the settings mean, so that what was stored outlives the software that stored it.

`SEMANTICS` is a number that is raised by every change of the bytes of an answer. A feed, or a
snapshot, keeps the number it was begun with: its answers go on as they were. A setting that was not
there yet when it was begun has the value that stands for the behaviour of that time.

Adding a setting
    Write it in `DEFAULTS`, for every number there, with the value that means "as before": a new
    bound that earlier feeds did not have is `None`, unbounded. Its default for new feeds stands in
    the model of the settings as always, and may be another. A test fails where a line is missing.
Changing the bytes of an answer
    Raise `SEMANTICS`, and add a row to `DEFAULTS`: the last one, with what changed. The code asks
    `config.semantics` which way to compute. Then store feeds of the new number for the tests:
    `scripts/make_stored_feeds.py`.
Giving up a number
    Add it to `GIVEN_UP`, with the last version that computed it. Its row of `DEFAULTS` stays, and
    its stored feeds: what was begun under it is refused in one line that says how to go on, and
    `fork` still reads its settings.
"""

from collections.abc import Mapping
from typing import Any

from online_svm.errors import InvalidConfig, InvalidSnapshot

SEMANTICS = 2
"""Of what is begun now."""

UNNUMBERED = 1
"""Of what was stored before there was a number."""

Settings = Mapping[str, Any]

DEFAULTS: dict[int, dict[str, dict[str, Any]]] = {
    # The software before its first release.
    1: {
        "predictor": {
            "semantics": 1,
            "classes": None,
            "labels": "text",
            "features": None,
            "missing": "reject",
            "learner": "svc",
            "committee": "single",
            "kernel": "rbf",
            "C": 1.0,
            "C_prob": 1.0,
            "eta": 0.1,
            "gamma": "scale",
            "degree": 3,
            "coef0": 0.0,
            "tol": 0.001,
            "class_weight": None,
            "scale": "standard",
            "rescale_every": 20,
            "split": "interleaved",
            "folds": 5,
            "train_fraction": 0.7,
            "window": 2000,
            "refit_every": 250,
            "refit_lag": None,
            "early_until": None,
            "maps": ["platt", "isotonic", "binning"],
            "map_data": "calibration",
            "maps_every": None,
            "mixed_share": 0.001,
            "n_bins": 10,
            "implied_models": 99,
            "evidential_model": "likelihood",
            "evidential_alpha": 0.05,
            "taxonomy": "class",
            "taxonomy_bins": 4,
            "interval_level": None,
            "metrics_every": 100,
            "seed": 0,
            "horizon": None,
            "horizon_in": "examples",
            "maturity": "horizon",
            "max_pending": 100_000,
            "given_answers": False,
            "monitors": "off",
            "tolerance": 0.02,
            "alarm_level": 0.01,
            "monitor_every": 10000,
            "on_drift": "report",
            "max_resets": 2,
            "metrics_window": None,
            "slices": [],
            "max_slices": 20,
        },
        "limits": {
            "max_entry_bytes": 1 << 20,
            "max_features": 10_000,
            "max_values": None,
            "max_label_chars": 256,
            "max_label_bytes": None,
            "max_classes": None,
            "max_id_chars": 256,
            "dedupe_window": 0,
            "payload": "full",
        },
        "combination": {
            "semantics": 1,
            "rule": "dempster",
            "recalibration": "platt",
            "recalibrate_every": 100,
            "window": 2000,
        },
        "join": {"join_window": 100},
    },
    # Messages of version 2: the headline comes first, the Venn hull stands apart.
    2: {
        "predictor": {
            "semantics": 2,
            "classes": None,
            "labels": "text",
            "features": None,
            "missing": "reject",
            "learner": "svc",
            "committee": None,
            "kernel": "rbf",
            "C": 1.0,
            "C_prob": 1.0,
            "eta": 0.1,
            "gamma": "scale",
            "degree": 3,
            "coef0": 0.0,
            "tol": 0.001,
            "class_weight": None,
            "scale": "standard",
            "rescale_every": 20,
            "split": "interleaved",
            "folds": 5,
            "train_fraction": None,
            "window": 2000,
            "refit_every": 250,
            "refit_lag": None,
            "early_until": None,
            "maps": ["platt", "isotonic", "binning"],
            "map_data": "calibration",
            "maps_every": None,
            "mixed_share": 0.001,
            "n_bins": 10,
            "implied_models": 99,
            "evidential_model": "likelihood",
            "evidential_alpha": 0.05,
            "taxonomy": None,
            "taxonomy_bins": 4,
            "interval_level": 0.9,
            "metrics_every": 100,
            "seed": 0,
            "horizon": None,
            "horizon_in": "examples",
            "maturity": "horizon",
            "max_pending": 100_000,
            "given_answers": False,
            "monitors": "off",
            "tolerance": 0.02,
            "alarm_level": 0.01,
            "monitor_every": 10000,
            "on_drift": "report",
            "max_resets": 2,
            "metrics_window": None,
            "slices": [],
            "max_slices": 20,
        },
        "limits": {
            "max_entry_bytes": 1 << 20,
            "max_features": 10_000,
            "max_values": None,
            "max_label_chars": 256,
            "max_label_bytes": None,
            "max_classes": None,
            "max_id_chars": 256,
            "dedupe_window": 0,
            "payload": "full",
        },
        "combination": {
            "semantics": 2,
            "rule": "dempster",
            "recalibration": "platt",
            "recalibrate_every": 100,
            "window": 2000,
        },
        "join": {"join_window": 100},
    },
}
"""What an absent setting means: by semantics, then by group of settings, as JSON has the values.

The groups are `PredictorConfig`, the limits of an entry, `CombinerConfig`, and what a combination
joins. A setting that has no default (the classes and sources of a combination) has no line."""

REQUIRED = {"combination": ("classes",), "join": ("feeds",)}
"""Settings that have no default."""

GIVEN_UP: dict[int, str] = {1: "the software before the first release"}
"""Semantics that are no longer computed, and the last version that did."""


def check(number: object) -> int:
    """Return a number of semantics, if this version computes them.

    Raises
    ------
    InvalidConfig
        If it is unknown, as that of a newer version is, or given up; the message says what to do.

    Examples
    --------
    >>> check(2)
    2
    >>> check(9)
    Traceback (most recent call last):
    online_svm.errors.InvalidConfig: semantics 9 is not known here (known: 2): upgrade online-svm
    """
    if type(number) is int and number in GIVEN_UP:
        raise InvalidConfig(
            f"semantics {number} is no longer computed: go on with {GIVEN_UP[number]}"
        )
    return _known(number)


def of(stored: Mapping[str, Settings]) -> object:
    """Return the number that stored groups of settings carry, whether it is known or not.

    Examples
    --------
    >>> of({"predictor": {"semantics": 3}, "limits": {}}), of({"predictor": {}, "limits": {}})
    (3, 1)
    """
    found = (part["semantics"] for part in stored.values() if "semantics" in part)
    return next(found, UNNUMBERED)


def completed(stored: Mapping[str, Settings]) -> dict[str, dict[str, Any]]:
    """Return stored groups of settings, whole: what is absent has the meaning of their time.

    Parameters
    ----------
    stored : mapping from the name of a group to its settings, as JSON has them

    Raises
    ------
    InvalidConfig
        If this version does not compute their semantics, or does not know one of the settings.

    Examples
    --------
    >>> whole = completed({"predictor": {"semantics": 2, "window": 60}})["predictor"]
    >>> whole["window"], whole["semantics"], whole["early_until"]
    (60, 2, None)
    """
    check(of(stored))
    return meaning(stored)


def meaning(stored: Mapping[str, Settings]) -> dict[str, dict[str, Any]]:
    """Return what `completed` does, also of semantics that were given up: to be forked.

    Raises
    ------
    InvalidConfig
        If this version does not know their semantics, or one of the settings.

    Examples
    --------
    >>> meaning({"predictor": {"semantics": 1, "window": 60}})["predictor"]["taxonomy"]
    'class'
    """
    defaults = DEFAULTS[_known(of(stored))]
    return {name: _whole(name, dict(part), defaults) for name, part in stored.items()}


def are_equal(group: str, stored: object, ours: Settings) -> bool:
    """Return whether the settings in a snapshot, of whatever version, mean the same as `ours`.

    Raises
    ------
    InvalidSnapshot
        If this version cannot say, since it does not know them.

    Examples
    --------
    >>> stored = {"semantics": 2, "classes": ["a", "b"]}
    >>> are_equal("combination", stored, DEFAULTS[2]["combination"] | stored)
    True
    """
    if not isinstance(stored, dict):
        return False
    try:
        return completed({group: stored})[group] == dict(ours)
    except InvalidConfig as error:
        raise InvalidSnapshot(f"the snapshot was made by another version: {error}") from error


def _known(number: object) -> int:
    if type(number) is int and number in DEFAULTS:
        return number
    known = ", ".join(map(str, sorted(set(DEFAULTS) - set(GIVEN_UP))))
    raise InvalidConfig(
        f"semantics {str(number)[:40]} is not known here (known: {known}): upgrade online-svm"
    )


def _whole(
    group: str, settings: dict[str, Any], defaults: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    absent = defaults.get(group, {})
    unknown = sorted(settings.keys() - absent.keys() - set(REQUIRED.get(group, ())))
    if unknown:
        raise InvalidConfig(f"setting {unknown[0][:80]} is not known here: upgrade online-svm")
    return absent | settings
