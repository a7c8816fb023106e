"""What holds of the paper on the P-SVM, on few seeds; the full sweep is the reproduction."""

import json

import numpy as np
import pytest

from scripts.papers import Run, psvm, repeat
from scripts.papers.psvm import line_trial, plane_trial

SEEDS = range(5)
PLANE_SEEDS = range(30)  # as many as the paper averages over


@pytest.fixture(scope="module")
def at_noise():
    return {
        noise: [plane_trial(seed, noise) for seed in PLANE_SEEDS] for noise in (0.0, 0.1, 0.3, 0.5)
    }


def accuracy(trials, name):
    return np.mean([trial[name]["accuracy"] for trial in trials])


def divergences(trials, name):
    """Return the mean divergences over class +1 and over both."""
    return np.mean([trial[name]["divergence"] for trial in trials], axis=0)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0, 10.0])
def test_on_the_line_the_probabilities_are_closer_than_platts_whatever_eta_and_sigma(sigma):
    trials = [line_trial(seed, sigma, (0.01, 0.05, 0.1, 0.2)) for seed in SEEDS]
    for trial in trials:
        assert max(both for _, both in trial["psvm"].values()) < trial["csvm"][1]
        assert trial["csvm"][0] > 80  # the printed 11.3 cannot be reached as described
    if sigma == 1.0:  # the printed divergence lies inside the spread
        values = [trial["psvm"]["0.1"][0] for trial in trials]
        assert min(values) < 0.2 < max(values)


def test_on_the_plane_both_machines_agree_with_the_bayes_class_as_printed(at_noise):
    assert accuracy(at_noise[0.1], "psvm") == pytest.approx(0.981, abs=0.01)
    assert accuracy(at_noise[0.1], "csvm") == pytest.approx(0.965, abs=0.01)
    assert divergences(at_noise[0.1], "psvm")[0] == pytest.approx(3.2, abs=2.0)


def test_with_noise_the_p_svm_stays_closer_and_the_c_svm_becomes_better(at_noise):
    for noise in (0.0, 0.1, 0.3):
        for trial in at_noise[noise]:
            assert trial["psvm"]["divergence"][1] < trial["csvm"]["divergence"][1]
    higher = {n: accuracy(t, "psvm") > accuracy(t, "csvm") for n, t in at_noise.items()}
    assert higher == {0.0: False, 0.1: True, 0.3: True, 0.5: False}
    values = [divergences(trials, "csvm")[1] for trials in at_noise.values()]
    assert values == sorted(values, reverse=True)


def test_the_result_is_plain_data_and_the_same_again(monkeypatch):
    monkeypatch.setattr(psvm, "SIGMAS", (1.0,))
    monkeypatch.setattr(psvm, "NARROW_SIGMAS", (1.0,))
    monkeypatch.setattr(psvm, "QUICK_SEEDS", 2)
    result = repeat("psvm", Run(quick=True))
    assert result == repeat("psvm", Run(quick=True))
    assert json.loads(json.dumps(result))["rows"] == result["rows"]
