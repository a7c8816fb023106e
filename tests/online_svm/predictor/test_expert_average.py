"""The average of the experts, against the method written out with numpy."""

import numpy as np
import pytest

from online_svm.predictor.expert_average import AverageRows, ExpertAverage

GROUPS = {
    "stack": "model", "venn": "model", "recent-stack-250": "stack", "recent-stack-1000": "stack",
    "base-rate": "labels", "regression": "labels", "score": "score",
}  # fmt: skip
PAIR = {name: GROUPS[name] for name in ("stack", "venn", "recent-stack-250", "base-rate")}
PRIORS = {
    "then": {"model": 0.63, "stack": 0.27, "labels": 0.10, "score": 1.0},
    "now": {"model": 0.70, "stack": 0.20, "labels": 0.10, "score": 1.0},
    "hedge": {"model": 0.20, "stack": 0.40, "labels": 0.40, "score": 1.0},
}
SHARES = {"then": 0.01, "now": 0.005, "hedge": 0.005}
RATES = {"then": 0.1, "now": 1.0, "hedge": 0.03}
TRUST = {"then": 0.3, "now": 0.6, "hedge": 0.1}


class WrittenOut:
    """The three weightings, or "now" alone where labels come at once."""

    def __init__(self, groups, is_delayed):
        self.groups = np.array(list(groups.values()))
        self.kinds = ["then", "now", "hedge"] if is_delayed else ["now"]
        self.is_delayed, self.credited = is_delayed, 0
        self.weights = {kind: self.first(kind) for kind in self.kinds}
        self.trust = self.first_trust()

    def first(self, kind):
        count = [np.count_nonzero(self.groups == group) for group in self.groups]
        weights = np.array([PRIORS[kind][group] for group in self.groups]) / count
        return weights / weights.sum()

    def first_trust(self):
        trust = np.array([TRUST[kind] for kind in self.kinds])
        return trust / trust.sum()

    def answer(self, now):
        """Return the average, and the forecast of each weighting."""
        awake = ~np.isnan(now[:, 0])
        if self.is_delayed and self.credited < 50:
            awake &= self.groups != "stack"
        said = np.array([clipped(p) for p in now[awake]])
        parts = [self.weights[kind][awake] for kind in self.kinds]
        forecasts = np.array([part / part.sum() @ said for part in parts])
        return self.trust @ forecasts, forecasts

    def learn(self, then, forecasts, now, label, age):
        """Learn the label of a row that was answered `age` labels ago with `then`."""
        model = self.groups == "model"
        has_now, slept = model & ~np.isnan(now[:, 0]), np.isnan(then[:, 0])
        before_a_model = (has_now & slept).any()
        for kind in self.kinds:
            credits = then[:, label].copy()
            if before_a_model:
                credits[~model] = np.nan
            uses_now = has_now if kind == "now" else has_now & slept
            credits[uses_now] = now[uses_now, label]
            credits = np.maximum(credits, 1e-6)
            of = model if (model & ~np.isnan(credits)).any() else self.groups == "labels"
            of = of & ~np.isnan(credits)
            weights = self.weights[kind]
            others = np.average(credits[of], weights=weights[of])
            weights = weights * np.where(np.isnan(credits), others, credits) ** RATES[kind]
            weights /= weights.sum()
            self.weights[kind] = (1 - SHARES[kind]) * weights + SHARES[kind] * self.first(kind)
        trust = self.trust * forecasts[:, label] ** (5 / (5 + age))
        self.trust = 0.998 * trust / trust.sum() + 0.002 * self.first_trust()
        self.credited += bool((~slept & (self.groups == "stack")).any())


def clipped(p):
    """Raise what is below a millionth to it; scale the rest so that the sum stays one."""
    low = p < 1e-6
    if not low.any():
        return p
    return np.where(low, 1e-6, p * (1.0 - 1e-6 * low.sum()) / p[~low].sum())


def answers_of_experts(groups, n, classes, seed, *, model_from=90, stacks_from=160):
    """Return what each expert says of n rows, shape (n, K, classes), and the labels.

    The experts of a model are asleep in the first rows, the stacks longer. Some are certain.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    said = rng.dirichlet(np.ones(classes), size=(n, len(groups)))
    truth = 0.5 * said + 0.5 * np.eye(classes)[labels][:, None]
    said = np.where(rng.uniform(size=(n, len(groups), 1)) < 0.4, truth, said)
    said[rng.uniform(size=(n, len(groups))) < 0.02] = np.eye(classes)[0]
    begin = {"model": model_from, "stack": stacks_from}
    for k, group in enumerate(groups.values()):
        said[: begin.get(group, 0), k] = np.nan
    return said, labels


def averaged(average, now, columns, sources=None, ages=None, stored=None, present=None):
    """Return the averages of rows in order; `now` has shape (m, K, classes)."""
    m, experts, classes = now.shape
    weightings = average.shape[0]
    if present is None:
        present = np.empty((1, classes))
    then, forecasts = stored or (
        np.empty((1, experts, classes)), np.empty((1, weightings, classes))
    )  # fmt: skip
    mixed = np.empty((m, classes))
    average.answer(AverageRows(
        np.ascontiguousarray(now.swapaxes(0, 1)), then, forecasts, columns,
        np.full(m, -1) if sources is None else sources,
        np.zeros(m) if ages is None else ages, mixed, present,
    ))  # fmt: skip
    return mixed


def late_events(n, delay):
    """Return rows in order, and whether each is learned: so many rows after its answer."""
    events = [(k, learns) for i in range(n) for k, learns in ((i, False), (i - delay, True))]
    return [(row, learns) for row, learns in events if row >= 0]


def answered_late(average, said, now, labels, events, sizes):
    """Answer and learn events in calls of these sizes; `now` is what experts say at a label.

    Return the averages of answered rows, and those of learned rows by `now`.
    """
    kept, found, presents, begin = {}, [], [], 0
    for size in sizes:
        call = events[begin : begin + size]
        begin += size
        m, (_, experts, classes) = len(call), said.shape
        then = np.full((m, experts, classes), 7.0)
        forecasts = np.full((m, average.shape[0], classes), 7.0)
        here = {row: i for i, (row, learns) in enumerate(call) if not learns}
        sources, columns, ages = np.full(m, -1), np.full(m, -1), np.zeros(m)
        for i, (row, learns) in enumerate(call):
            if learns:
                sources[i], columns[i], ages[i] = here.get(row, i), labels[row], row % 9
            if learns and row not in here:
                then[i], forecasts[i] = kept[row]
        rows = [row for row, _ in call]
        asked = np.array([not learns for _, learns in call])
        values = np.where(asked[:, None, None], said[rows], now[rows])
        present = np.empty((m, classes))
        mixed = averaged(average, values, columns, sources, ages, (then, forecasts), present)
        found += list(mixed[asked])
        presents += list(present[~asked])
        kept |= {row: (then[i].copy(), forecasts[i].copy()) for row, i in here.items()}
    return np.array(found), np.array(presents)


@pytest.mark.parametrize("groups", [GROUPS, PAIR], ids=["all", "few"])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_with_labels_at_once_it_is_the_method_written_out(groups, classes):
    said, labels = answers_of_experts(groups, 500, classes, classes)
    columns = np.where(np.arange(500) % 11 == 5, -1, labels)
    average, written = ExpertAverage(groups, is_delayed=False), WrittenOut(groups, False)
    expected = []
    for i, column in enumerate(columns.tolist()):
        point, forecasts = written.answer(said[i])
        expected.append(point)
        if column >= 0:
            written.learn(said[i], forecasts, said[i], column, 0)
    np.testing.assert_allclose(averaged(average, said, columns), expected, rtol=1e-10)
    np.testing.assert_allclose(list(average.weights.values()), written.weights["now"], rtol=1e-9)


@pytest.mark.parametrize("groups", [GROUPS, PAIR], ids=["all", "few"])
@pytest.mark.parametrize("classes", [2, 3])
def test_with_late_labels_it_is_the_method_written_out(groups, classes):
    said, labels = answers_of_experts(groups, 600, classes, 1)
    later, _ = answers_of_experts(groups, 600, classes, 2, model_from=0)
    later[: 90 - 40, [group == "model" for group in groups.values()]] = np.nan
    average, written = ExpertAverage(groups, is_delayed=True), WrittenOut(groups, True)
    events, kept, expected, expected_now = late_events(600, 40), {}, [], []
    for row, learns in events:
        if learns:
            expected_now.append(written.answer(later[row])[0])
            written.learn(said[row], kept[row], later[row], labels[row], row % 9)
        else:
            point, kept[row] = written.answer(said[row])
            expected.append(point)
    found, present = answered_late(average, said, later, labels, events, [len(events)])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(present, expected_now, rtol=1e-9)
    np.testing.assert_allclose(average._weights, list(written.weights.values()), rtol=1e-8)
    np.testing.assert_allclose(average._trust, written.trust, rtol=1e-8)


def learned(groups, is_delayed=True):
    """Return an average whose weights differ from the first ones."""
    average = ExpertAverage(groups, is_delayed=is_delayed)
    said, labels = answers_of_experts(groups, 80, 2, 5, model_from=0, stacks_from=0)
    averaged(average, said, labels)
    return average


@pytest.mark.parametrize("is_delayed", [False, True])
@pytest.mark.parametrize(
    "change",
    [{"stack": None, "temperature": "model", "matrix": "model"}, {"score": None},
     {"stack": None, "venn": None}, {"further": "labels"}, {"score": "score", "base-rate": None}],
    ids=["two for one", "one goes", "a group goes", "one comes", "one of two goes"],
)  # fmt: skip
def test_experts_that_remain_keep_their_weights_in_proportion(change, is_delayed):
    average = learned(GROUPS, is_delayed)
    groups = {name: group for name, group in (GROUPS | change).items() if group is not None}
    other = average.of_experts(groups)
    assert other.names == tuple(groups)
    np.testing.assert_allclose(other._weights.sum(axis=1), 1.0, rtol=1e-12)
    before, after = average.weights, other.weights
    remain = [name for name in groups if name in GROUPS]
    if is_delayed:
        for ours, theirs in zip(average._weights, other._weights, strict=True):
            held = [ours[average.names.index(name)] for name in remain]
            now = [theirs[other.names.index(name)] for name in remain]
            np.testing.assert_allclose(np.divide(now, now[0]), np.divide(held, held[0]))
    else:
        parts = [after[name] / before[name] for name in remain]
        np.testing.assert_allclose(parts, parts[0], rtol=1e-12)
    if "temperature" in change:
        assert after["venn"] == pytest.approx(before["venn"], rel=1e-12)
        assert after["temperature"] == pytest.approx(before["stack"] / 2, rel=1e-12)
    restored = ExpertAverage(groups, is_delayed=is_delayed)
    restored.restore(other.state())
    assert restored.weights == other.weights


def test_the_same_experts_are_the_same_average():
    average = learned(PAIR)
    assert average.of_experts(dict(PAIR)) is average
