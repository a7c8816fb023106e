"""The coverage of the headline's interval, where the truth is known."""

import numpy as np
import pytest
from interval_coverage import BAND, LEVEL, SETTINGS, SHARES, Case, logistic_band, means, measured
from scipy.special import expit

DRAWS = 12


@pytest.mark.parametrize("kind", ["2 %", "10 %", "50 %"])
def test_for_two_classes_the_headline_holds_the_frequency_in_the_bin_at_its_level(kind):
    case = Case(300, SHARES[kind], {"committee": "single", "taxonomy": "class"})
    found = [one for one in (measured(case, draw) for draw in range(DRAWS)) if one]
    assert len(found) > DRAWS // 2
    assert np.mean([one["headline"][0] for one in found]) >= LEVEL
    # The measure tells intervals that hold it from those that do not.
    assert np.mean([one["venn"][0] for one in found]) < LEVEL


def test_more_classes_are_asked_each_against_the_rest():
    case = Case(200, SHARES["four classes"], {"committee": "single"})
    lines = list(means("four", case, draws=1))
    names = [line.interval for line in lines]
    assert names[:2] == ["headline", "venn"]
    assert BAND in names
    assert all(0.0 <= line.of_bin <= 1.0 and line.width > 0.0 for line in lines)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize("name", SETTINGS)
def test_the_headline_holds_the_frequency_in_the_bin_for_every_machine_and_class(
    name, kind, tell_line
):
    check_headline(name, kind, 1000, 12, tell_line)


@pytest.mark.scale
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("n", "draws"), [(300, 40), (5000, 4)])
@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize("name", SETTINGS)
def test_so_it_does_with_fewer_and_with_more_examples(name, kind, n, draws, tell_line):
    check_headline(name, kind, n, draws, tell_line)


def check_headline(name, kind, n, draws, tell_line):
    lines = list(means(f"{name}, {kind}, n = {n:,}", Case(n, SHARES[kind], SETTINGS[name]), draws))
    for line in lines:
        tell_line(line)
    assert lines[0].interval == "headline"
    assert lines[0].of_bin >= LEVEL


def test_the_logistic_band_holds_the_truth_where_the_truth_is_logistic():
    held = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=400)
        band = logistic_band(scores, rng.random(400) < expit(2.0 * scores - 0.5), np.array([0.7]))
        assert band is not None
        held.append(band[0][0] <= expit(0.9) <= band[1][0])
    assert 0.85 <= np.mean(held) <= 0.95
