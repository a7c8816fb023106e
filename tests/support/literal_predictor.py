"""The specification of the predictor read literally: lists, and every machine refitted."""

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from online_svm.stream.split import is_early_refit, is_refit_due, training_mask
from online_svm.svm.probabilistic_svc import ProbabilisticSVC


class Literal:
    """Section 3 of the design with no state worth the name, by the class taxonomy."""

    def __init__(self, config):
        self.config, self.classes = config, config.classes
        self.seen, self.active, self.pending = [], None, None

    def step(self, x, label, p=np.nan):
        """Return scores and intervals of x, None before there is a model; then learn it."""
        answer = self.answer(x)
        self.seen.append((x, label, p))
        if self.active is not None:
            self.active["calibration"].append(len(self.seen) - 1)
        self.schedule()
        return answer

    def answer(self, x):
        if self.active is None:
            return None
        members = [i for i in self.active["calibration"] if self.seen[i][1] is not None]
        members = members if self.config.window is None else members[-self.config.window :]
        scores, known = self.scores(x), self.active["categories"]
        for i in members:
            if i not in known:
                known[i] = category(self.scores(self.seen[i][0]))
        inside = [self.seen[i][1] for i in members if known[i] == category(scores)]
        counts = np.array([inside.count(c) for c in self.classes])
        return scores, np.stack([counts, counts + 1], axis=1) / (counts.sum() + 1)

    def schedule(self):
        n, config = len(self.seen), self.config
        if self.pending and self.pending["at"] == n:
            self.active, self.pending = self.pending, None
            self.active["calibration"] += range(self.active["freeze"], n)
        if not is_refit_due(n, config.refit_every):
            return
        start = 0 if config.window is None else max(0, n - config.window)
        known = {label for _, label, _ in self.seen[start:] if label is not None}
        if self.active is None and len(known) < 2:
            return
        trains = training_mask(config.split, start, n, config.training_share, config.seed)
        early = n < config.lags_from or is_early_refit(n, config.refit_every)
        lag = 0 if early else config.lag
        self.pending = self.fit([i for i in range(start, n) if trains[i - start]]) | {
            "calibration": [i for i in range(start, n) if not trains[i - start]],
            "at": n + lag,
            "freeze": n,
            "categories": {},
        }
        if lag == 0:
            self.active, self.pending = self.pending, None

    def fit(self, T):
        X = np.array([self.seen[i][0] for i in T])
        is_scaled = self.config.scale == "standard"
        scaler = StandardScaler(with_mean=is_scaled, with_std=is_scaled).fit(X)
        kind = self.probabilistic if self.config.learner == "psvm" else self.one_against_all
        return {"scaler": scaler, "machines": kind(scaler.transform(X), T)}

    def probabilistic(self, X, T):
        signs = [0 if y is None else 2 * self.classes.index(y) - 1 for _, y, _ in self.of(T)]
        probabilities = np.array([p for _, _, p in self.of(T)])
        config = self.config
        machine = ProbabilisticSVC(
            C=config.C, C_prob=config.C_prob, gamma=0.3, eta=config.eta, tol=1e-9
        )
        return [machine.fit(X, np.array(signs), probabilities)]

    def one_against_all(self, X, T):
        labels, machines = np.array([y for _, y, _ in self.of(T)]), []
        for name in self.classes[1:] if len(self.classes) == 2 else self.classes:
            target = labels == name
            if target.all() or not target.any():
                machines.append(1.0 if target.all() else -1.0)
            else:
                svc = SVC(C=self.config.C, gamma=self.config.gamma, tol=1e-6)
                machines.append(svc.fit(X, target))
        return machines

    def of(self, T):
        return [self.seen[i] for i in T]

    def scores(self, x):
        row = self.active["scaler"].transform(x[None, :])
        return [
            machine if isinstance(machine, float) else float(machine.decision_function(row)[0])
            for machine in self.active["machines"]
        ]


def category(scores):
    return int(scores[0] > 0) if len(scores) == 1 else int(np.argmax(scores))
