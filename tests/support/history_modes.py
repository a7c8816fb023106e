"""The matrix of modes that histories of faults go through, and the input of one history.

`mode_of(seed)` walks through every combination of a machine, background refits, repeated ids, a
blocking consumer, a second worker and late labels, in an order in which neighbours differ.
"""

import json
import random
from dataclasses import dataclass

import numpy as np
from oracle_feeds import of_kinds

from workers.config.settings import WorkerSettings
from workers.feed.retention import DOWNSTREAM

MAPS = (
    *("platt", "isotonic", "binning", "venn-abers", "evidential-binning", "evidential-isotonic"),
    *("evidential-logistic", "implied", "mixed"),
)
DRIFT = {
    "committee": "single", "window": 100, "refit_every": 50,
    "alarm_level": 0.5, "tolerance": 0.001,
}  # fmt: skip
"""Monitors that are easily alarmed: their labels are turned round after `TURN` rows."""

TURN = 150

MACHINES = {
    "svc-oldest": {"split": "oldest", "maps": MAPS},
    "svc-interleaved": {
        "split": "interleaved", "kernel": "linear", "taxonomy": "class-rank",
    },
    "psvm-oldest": {"learner": "psvm", "split": "oldest", "taxonomy": "venn-abers"},
    "psvm-interleaved": {
        "learner": "psvm", "taxonomy": "class-rank",
        "maps": ("platt", "evidential-logistic", "mixed"),
    },
    "kinds-interleaved": {"taxonomy": "class-rank"},
    "drift-report": DRIFT,
    "drift-refit": DRIFT | {"on_drift": "refit"},
    "drift-reset": DRIFT | {"on_drift": "reset"},
}  # fmt: skip
SWITCHES = ("lag", "dedupe", "block", "two", "late")
MODES = len(MACHINES) << len(SWITCHES)

_STEP = 89
"""Has no factor in common with MODES, so that every mode comes once in so many seeds."""

COMMON = {
    "classes": ("a", "b"), "window": 50, "refit_every": 15, "metrics_every": 10, "gamma": 0.5,
    "keep_input": False,
}  # fmt: skip
RETAINED = 40
"""Answers that a blocked feed keeps."""

FEED, GROUP = "first", DOWNSTREAM


@dataclass(frozen=True)
class Mode:
    """One cell of the matrix."""

    machine: str
    switches: frozenset[str]

    def __contains__(self, switch):
        return switch in self.switches

    def __str__(self):
        return " ".join((self.machine, *(s for s in SWITCHES if s in self.switches)))

    def has(self, words):
        """Return whether the mode has all words: of its machine, or switches."""
        return set(words) <= {*self.machine.split("-"), *self.switches}

    @property
    def watches(self):
        return self.machine.startswith("drift")

    @property
    def length(self):
        """Times as many entries as a history has else: alarms need labels, and what follows.

        Of late labels a third comes after the horizon.
        """
        if not self.watches:
            return 1
        return 8 if "late" in self else 4

    @property
    def options(self):
        options = COMMON | MACHINES[self.machine]
        if "dedupe" in self:
            options["dedupe_window"] = 10
        if "block" in self:
            options |= {"downstream": "block", "retain_out": RETAINED}
        if "late" in self:
            maturity = "arrival" if self.machine.endswith("oldest") else "horizon"
            options |= {"horizon": 9, "maturity": maturity}
        return options

    def settings(self, **changes):
        return WorkerSettings(**(self.options | changes))


def mode_of(seed):
    switches, machine = divmod(seed * _STEP % MODES, len(MACHINES))
    on = frozenset(name for bit, name in enumerate(SWITCHES) if switches >> bit & 1)
    return Mode(list(MACHINES)[machine], on)


def rows(mode, seed, count):
    """Return the fields of input entries of two noisy classes, some of them bad.

    Of a machine that watches for drift, labels are turned round after `TURN` rows. A P-SVM gets
    probabilities for one in three, and with `dedupe` ids repeat, within what is remembered and
    beyond it. With `late` most labels come up to 14 examples later.
    """
    generator, choose = np.random.default_rng(seed), random.Random(seed)
    X = generator.normal(size=(count, 3)).round(4)
    odds = X[:, 0] + generator.normal(size=count)
    if mode.watches:
        odds = np.where(np.arange(count) < TURN, 1.0, -1.0) * (5 + odds + 4 * X[:, 0])
    found, due = [], {}
    for i, x in enumerate(X.tolist()):
        if mode.machine.startswith("kinds"):
            x = of_kinds(i, [*x, x[1] - x[2]])
        fields = ["x", "[1,2]" if i % 40 == 17 else json.dumps(x)]
        label, comes_late = "b" if odds[i] > 0 else "a", False
        if mode.machine.startswith("psvm") and i % 3 == 1:
            fields += ["p", str(round(1 / (1 + np.exp(-2 * odds[i])), 3))]
        elif comes_late := "late" in mode and choose.random() < 0.6:
            pass
        else:
            fields += ["y", label]
        again = i > 20 and "dedupe" in mode and choose.random() < 0.15
        fields += ["id", f"id-{i - choose.choice((1, 4, 9, 18)) if again else i}"]
        found.append(fields)
        if comes_late:
            due.setdefault(i + choose.randrange(15), []).append(["for", fields[-1], "y", label])
        found += due.pop(i, [])
    return found[:count]
