"""The coverage of the headline's interval, where the truth is known."""

import numpy as np
import pytest
from interval_coverage import (
    BAND,
    BY_CLASSES,
    LEVEL,
    SHARES,
    Case,
    logistic_band,
    means,
    measured,
    settings_of,
)
from scipy.special import expit

from online_svm.metrics.interval_coverage import interval_coverage
from scripts.bench.quality.methods import ours
from scripts.bench.quality.streams import STREAMS
from scripts.bench.quality.streams import stream as real_stream
from workers.history.backtest.prequential import HEADLINE

DRAWS = 12
MANY = {2: 64, 3: 64, 4: 40, 7: 32}
"""Streams by classes: the standard error of a cell is below a point; that of one is 4 to 7."""

MORE = ("car", "wine", "segment", "moving-squares", "waveform", "rbf-drift")
SETTINGS = {
    "committee": {"committee": "default"},
    "single": {"committee": "single", "taxonomy": "class"},
}


@pytest.mark.parametrize("kind", ["2 %", "10 %", "50 %"])
def test_for_two_classes_the_headline_holds_the_frequency_in_the_bin_at_its_level(kind):
    case = Case(300, SHARES[kind], settings_of("single", 300, taxonomy="class"))
    found = [one for one in (measured(case, draw) for draw in range(DRAWS)) if one]
    assert len(found) > DRAWS // 2
    assert np.mean([one["headline"][0] for one in found]) >= LEVEL
    # The measure tells intervals that hold it from those that do not.
    assert np.mean([one["venn"][0] for one in found]) < LEVEL


def test_more_classes_are_asked_each_against_the_rest():
    case = Case(200, SHARES["four classes"], settings_of("single", 200))
    lines = list(means("four", case, draws=1))
    names = [line.interval for line in lines]
    assert names[:2] == ["headline", "venn"]
    assert BAND in names
    assert all(0.0 <= line.of_point <= 1.0 and line.width > 0.0 for line in lines)


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
    settings = settings_of(n=n, **SETTINGS[name])
    lines = list(means(f"{name}, {kind}, n = {n:,}", Case(n, SHARES[kind], settings), draws))
    for line in lines:
        tell_line(line)
    assert lines[0].interval == "headline"
    if kind == "four classes":  # it is about P(y | p): see below
        assert lines[0].of_point > lines[1].of_point
    else:
        assert lines[0].of_bin >= LEVEL


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("n", [500, 1000, 2600])
@pytest.mark.parametrize("k", BY_CLASSES)
def test_the_headline_holds_what_its_probability_means_for_two_classes_and_for_more(
    k, n, tell_line
):
    case = Case(n, BY_CLASSES[k], {"maps": ()}, has_band=False)
    line, *_ = means(f"default, {k} classes, n = {n:,}", case, MANY[k])
    assert line.interval == "headline"
    tell_line(line)
    assert 0.88 <= line.of_point <= 0.97
    assert line.error < 0.01


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_on_real_and_drifting_streams_of_more_classes_it_is_told_beside_right_intervals(tell_line):
    found = [told(name, tell_line) for name in MORE]
    right = np.mean([one.of_perfect for one in found])  # .81: answers are few in a bin
    assert np.mean([one.coverage for one in found]) >= 0.85 * right
    assert np.mean([one.width for one in found]) <= 0.25


def told(name, tell_line):
    """Tell how the interval of the most probable class does on a stream, and return it."""
    X, codes = (part[:3000] for part in real_stream(name, 0))
    said = ours(X, codes, STREAMS[name].n_classes, maps=())[HEADLINE]
    points, intervals = said.probabilities[250:], said.intervals[250:]
    rows, chosen = np.arange(len(points)), points.argmax(axis=1)
    hits = chosen == codes[250:]
    one = interval_coverage(points[rows, chosen], intervals[rows, chosen], hits)
    tell_line(
        f"default, {name:<26}headline            frequency {one.coverage:6.1%}"
        f"  of right ones {one.of_perfect:6.1%}  width {one.width:.3f}"
    )
    return one


def test_the_logistic_band_holds_the_truth_where_the_truth_is_logistic():
    held = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=400)
        band = logistic_band(scores, rng.random(400) < expit(2.0 * scores - 0.5), np.array([0.7]))
        assert band is not None
        held.append(band[0][0] <= expit(0.9) <= band[1][0])
    assert 0.85 <= np.mean(held) <= 0.95
