"""Claims of Xu et al. (2016) about their tables, tried on the measurements."""

from typing import Any

from scripts.papers.report import claim

Result = dict[str, Any]
Cases = dict[str, bool]

PRINTED_MODELS = ("bayesian", "inverse pignistic", "likelihood")


def claims(table_2: list[Result], three: list[Result]) -> list[Result]:
    """Count in how many settings each statement holds.

    Parameters
    ----------
    table_2, three : list of dict
        The parts of a result of `experiments.run`.
    """
    return [
        claim(
            "in scenario (c) the likelihood model beats the Bayesian product",
            "Table 2",
            _unbalanced(table_2),
        ),
        claim(
            "the likelihood model is the best of the three, except on adult (a)",
            "section 5.2",
            {s: holds for s, holds in _best(table_2, PRINTED_MODELS).items() if s != "adult (a)"},
        ),
        claim(
            "the likelihood model is also at least as good as the confidence model",
            "not tried in the paper for ten classifiers",
            _best(table_2, ("likelihood", "confidence")),
        ),
        claim(
            "for binning the likelihood model beats the Bayesian product",
            "figure 8",
            _against(three, ("binning", "likelihood"), ("binning", "bayesian")),
        ),
        claim(
            "under the likelihood model logistic regression beats binning",
            "figure 11",
            _against(three, ("logistic", "likelihood"), ("binning", "likelihood")),
        ),
        claim(
            "under the likelihood model logistic beats isotonic regression",
            "figure 11 has each ahead on some data sets",
            _against(three, ("logistic", "likelihood"), ("isotonic", "likelihood")),
        ),
    ]


def _unbalanced(table_2: list[Result]) -> Cases:
    chosen = [e for e in table_2 if (e["scenario"], e["model"]) == ("c", "likelihood")]
    return {"{data}, {split}".format(**e): e["over_bayesian"] < 0.0 for e in chosen}


def _best(table_2: list[Result], models: tuple[str, ...]) -> Cases:
    """Say for each shared setting whether no other of the models has a smaller mean error."""
    errors: dict[str, dict[str, float]] = {}
    for e in table_2:
        if e["split"] == "shared" and e["model"] in models:
            errors.setdefault("{data} ({scenario})".format(**e), {})[e["model"]] = e["error"]
    return {setting: by["likelihood"] <= min(by.values()) for setting, by in errors.items()}


def _against(three: list[Result], one: tuple[str, str], other: tuple[str, str]) -> Cases:
    ours, theirs = _errors(three, *one), _errors(three, *other)
    return {setting: ours[setting] < theirs[setting] for setting in ours}


def _errors(three: list[Result], method: str, model: str) -> dict[str, float]:
    return {
        f"{e['data']} {e['third']}": e["error"]
        for e in three
        if (e["method"], e["model"]) == (method, model)
    }
