"""The methods that the quality benchmark runs, by name. One run may give several rows."""

from functools import partial

from sklearn.svm import SVC

from scripts.bench.kept import program as program_of
from scripts.bench.quality import river_models, rolling
from scripts.bench.quality.answers import Method, ours

HEADLINE = "headline"
SINGLE = "single"
ROLLING_SVC = "rolling SVC"
SIGMOID = f"{ROLLING_SVC}, sigmoid"
BOOSTED = "rolling boosted trees, calibrated"
RIVER = "river"

JOINT = ("temperature", "vector", "matrix")
MAPS = ("platt", "isotonic", "binning", "venn-abers", *JOINT, "mixed")
EVIDENTIAL = ("evidential-binning", "evidential-isotonic", "evidential-logistic")

OURS: dict[str, Method] = {
    HEADLINE: partial(ours, row=HEADLINE),
    SINGLE: partial(ours, row=SINGLE, committee="single"),
    "crossfit": partial(ours, row="crossfit", split="crossfit"),
    "maps": partial(ours, row="maps", maps=MAPS),
    "evidential": partial(ours, row="evidential", maps=EVIDENTIAL),
    "implied": partial(ours, row="implied", maps=("implied",)),
}

_ROLLING: dict[str, Method] = {
    SIGMOID: rolling.calibrated(SIGMOID, SVC),
    f"{ROLLING_SVC}, isotonic": rolling.calibrated(f"{ROLLING_SVC}, isotonic", SVC, "isotonic"),
    f"{ROLLING_SVC}, temperature": rolling.calibrated(
        f"{ROLLING_SVC}, temperature", SVC, "temperature"
    ),
    f"{ROLLING_SVC}, tuned": rolling.tuned_svc(f"{ROLLING_SVC}, tuned"),
    "rolling LR": rolling.logistic_regression("rolling LR"),
    "rolling LR, calibrated": rolling.calibrated("rolling LR, calibrated", rolling.new_logistic),
    BOOSTED: rolling.calibrated(BOOSTED, rolling.new_boosted_trees),
}

_RIVER: dict[str, Method] = {
    f"{RIVER} {name}": river_models.of_river(f"{RIVER} {name}", make)
    for name, make in (
        ("LogisticRegression", river_models.logistic_regression),
        ("HoeffdingAdaptiveTree", river_models.adaptive_tree),
        ("ARF", river_models.adaptive_forest),
    )
}

_PACKAGE = "venn-abers package"

METHODS: dict[str, Method] = {
    **OURS,
    **_ROLLING,
    _PACKAGE: rolling.venn_abers_package(_PACKAGE),
    **_RIVER,
}


def program(method: str) -> str:
    """Return which program a method is of: kept results are of it, and of no other.

    Examples
    --------
    >>> program("river ARF").partition(" ")[0]
    'river'
    """
    if method in OURS:
        return program_of()
    return program_of("river" if method in _RIVER else "scikit-learn")
