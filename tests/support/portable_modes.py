"""Every mode of the predictor, each with a short stream, and the digests of what it gives.

No machine may change a digest, so the streams are made of sums and products of uniform numbers:
numpy's normal variates take logarithms from the C library. As a program it prints as JSON what this
machine is, and the digest of every mode: of all it publishes and keeps.

    python tests/support/portable_modes.py [--trace] [MODE ...]

With `--trace` each mode has a list of digests, one an entry: two lists show where two machines
part.
"""

import json
import math
import sys
import time
from dataclasses import astuple
from datetime import UTC, datetime
from hashlib import sha256

import numpy
import numpy as np
import orjson
import scipy
import sklearn
import threadpoolctl
from numpy._core import _multiarray_umath as numpy_build
from pure_replay import replay

from online_svm.compiled.kernel import LIBRARY
from online_svm.metrics.sequential import monitor_set
from online_svm.predictor.combiner import Combiner, CombinerConfig
from online_svm.refit import learner as learning
from workers.config.settings import WorkerSettings

LABELS = tuple("abcdefg")
BINARY_MAPS = (
    *("platt", "isotonic", "binning", "venn-abers", "temperature", "vector", "matrix"),
    *("evidential-binning", "evidential-isotonic", "evidential-logistic", "implied", "mixed"),
)
JOINT_MAPS = (*BINARY_MAPS[:7], "evidential-binning", "mixed")
SMALL = {
    "committee": "single", "window": 80, "refit_every": 40, "metrics_every": 30,
    "metrics_window": 60, "refit_lag": 0, "maps": (),
}  # fmt: skip
DRIFT = {
    "taxonomy": "class", "window": 100, "refit_every": 50, "alarm_level": 0.5, "tolerance": 0.001,
    "slices": ("country", "age"),
}  # fmt: skip
TURN = 120
"""Examples after which the labels of a stream that drifts are turned round."""


def _modes():
    """Yield name, classes, kind of stream and settings of every mode."""
    for n in (2, 3, 7):
        maps = BINARY_MAPS if n == 2 else JOINT_MAPS
        for split in ("interleaved", "oldest", "crossfit"):
            yield f"svc {split} {n}", n, "plain", {"split": split, "maps": maps}
        yield f"default committee {n}", n, "plain", {"committee": None, "maps": ("mixed", "platt")}
        for taxonomy in ("class", "class-quantile", "class-rank", "margin", "venn-abers"):
            if n != 7:
                yield f"taxonomy {taxonomy} {n}", n, "plain", {"taxonomy": taxonomy}
    every = ("rbf", "rbf-wide", "rbf-narrow", "trees", "logistic")
    yield "committee of five 2", 2, "plain", {"committee": every, "maps": BINARY_MAPS[:-2]}
    yield "committee of five 3", 3, "plain", {"committee": every, "maps": JOINT_MAPS}
    for split in ("interleaved", "oldest"):
        options = {"learner": "psvm", "split": split, "maps": BINARY_MAPS}
        yield f"psvm {split}", 2, "soft", options
    yield "kernel poly", 3, "plain", {"kernel": "poly", "maps": ("platt",)}
    yield "kernel linear", 2, "plain", {"kernel": "linear", "class_weight": "balanced"}
    yield "wide kernel", 2, "plain", {"gamma": 0.03, "C": 50.0, "scale": "none"}
    yield "missing values", 3, "holes", {"missing": "mean", "maps": ("platt",)}
    yield "discovered labels", 3, "plain", {"classes": None, "maps": ("platt", "mixed")}
    yield "maps of training", 2, "plain", {"maps": BINARY_MAPS, "map_data": "training"}
    yield "hull", 2, "plain", {"interval_level": None, "committee": None}
    yield "narrow interval", 3, "plain", {"interval_level": 0.5, "taxonomy": "class-rank"}
    yield "paper", 3, "plain", {
        "split": "oldest", "window": None, "scale": "none", "interval_level": None,
        "monitors": "off", "gamma": 0.5,
    }  # fmt: skip
    for kind, horizon in (("late examples", 9), ("late time", "9ms")):
        late = {"horizon": horizon, "maps": ("platt", "mixed")}
        yield f"{kind} labels", 2, kind, late
    yield "late labels at arrival", 3, "late", {"horizon": 9, "maturity": "arrival"}
    yield "late labels of a committee", 2, "late", {"horizon": 9, "committee": None}
    for action in ("report", "refit", "reset"):
        yield f"drift {action}", 2, "drift", DRIFT | {"on_drift": action}
        committee = {"on_drift": action, "committee": None, "taxonomy": None}
        yield f"drift {action} of a committee 3", 3, "drift", DRIFT | committee
    late = {"on_drift": "refit", "horizon": 9}
    yield "drift with late labels", 2, "late drift", DRIFT | late
    yield "given answers", 2, "given", {"given_answers": True}
    for learner in ("single", None):
        yield f"kinds {learner or 'of a committee'}", 2, "kinds", {"committee": learner}
    yield "compact", 3, "plain", {"payload": "compact", "maps": ("platt",)}


MODES = {
    name: (n, kind, SMALL | {"classes": LABELS[:n]} | changes)
    for name, n, kind, changes in _modes()
}
"""Number of classes, kind of stream, and settings of a worker, by name."""
COMBINATIONS = {
    f"combine {rule} {recalibration}": {"rule": rule, "recalibration": recalibration}
    for rule in ("dempster", "cautious")
    for recalibration in ("platt", "isotonic")
}
"""Settings of a combination, by name."""


def entries_of(name):
    """Return the fields of the entries of a mode's stream, as flat lists of bytes."""
    n_classes, kind, _ = MODES[name]
    generator = np.random.default_rng(n_classes)
    count = 400 if "drift" in kind else 40 * n_classes + 120
    X, truth = _examples(generator, count, n_classes, 0.1 if "drift" in kind else 0.7)
    if "drift" in kind:
        truth[TURN:] = (truth[TURN:] + 1) % n_classes
    labels = [LABELS[code] for code in truth]
    found, due = [], {}
    for i, x in enumerate(X.tolist()):
        if "holes" in kind and i % 11 == 5:
            x[i % len(x)] = None
        if "kinds" in kind:
            x = of_kinds(i, x)
        fields = {"x": json.dumps(x), "id": f"id-{i}"}
        if "drift" in kind:
            fields["s"] = json.dumps({"country": "DE" if x[1] > 0 else "FR", "age": "old"})
        if "given" in kind and i % 5:
            p = round(0.5 + x[0] / 16, 3)
            fields["a"] = json.dumps({
                "status": "ok", "classes": ["a", "b"], "probabilities": [1 - p, p],
                "intervals": [[0.9 * (1 - p), 1 - p], [p, p + 0.1 * (1 - p)]],
            })  # fmt: skip
        if "time" in kind:
            fields["time"] = str(1000 + i)
        if "soft" in kind and i % 3 == 1:
            fields["p"] = str(round(0.5 + x[0] / 16, 3))
        elif "late" not in kind or i % 3 == 0:
            fields["y"] = labels[i]
        elif i % 10 != 4:
            due.setdefault(i + i * 7 % 13, []).append({"for": fields["id"], "y": labels[i]})
        found += [fields, *due.pop(i, ())]
    return [[part.encode() for pair in fields.items() for part in pair] for fields in found]


def of_kinds(i, x):
    """Return a row of every kind, some of whose names come late or are absent."""
    at = datetime.fromtimestamp(1_700_000_000 + round(1e6 * x[0]), UTC).isoformat()
    row = {"number": x[1], "category": f"c{round(3 * x[2])}", "boolean": x[3] > 0, "time": at}
    row |= {"text": f"remark {i}"} | ({"late": x[0]} if i >= 60 else {})
    if i % 13 == 5:
        row["number"] = None
    if i % 7 == 3:
        del row[sorted(row)[i % len(row)]]
    return row


def masses(count):
    """Return mass functions of three sources, shape (3, count, 3), and labels that fit them."""
    generator = np.random.default_rng(5)
    truth = generator.random(count) < 0.4
    parts = 0.05 + generator.random((3, count, 3))
    parts[:, :, 0] += 1.5 * truth
    parts[:, :, 1] += 1.5 * ~truth
    total = parts[:, :, 0] + parts[:, :, 1] + parts[:, :, 2]
    labels = ["ab"[int(y)] if i % 9 else None for i, y in enumerate(truth)]
    return parts / total[:, :, None], labels


def _examples(generator, count, n_classes, noise):
    """Return rows of four features, some of them repeated, and the codes of noisy classes."""
    uniform = generator.random((count, 12, 4 + n_classes))
    bells = uniform[:, 0]
    for j in range(1, 12):
        bells = bells + uniform[:, j]
    bells = bells - 6.0
    X = (bells[:, :4] * [1.0, 2.0, 0.1, 30.0]).round(3)
    X[20:count:17] = X[10 : count - 10 : 17]
    votes = noise * bells[:, 4:]
    for code in range(n_classes):
        votes[:, code] += bells[:, code % 4] * (1.0 - 0.5 * (code // 4))
    return X, votes.argmax(axis=1)


BATCH = 64


def of_predictor(name, batch=BATCH):
    """Yield the digests of a mode after each batch: of what was published, and of the state."""
    settings = WorkerSettings(**MODES[name][2])
    for outcome, predictor in replay(settings.predictor, entries_of(name), settings.limits, batch):
        yield outcome, outcome.after.digest + predictor.snapshot()


def of_combination(name, batch=BATCH):
    """Yield the same of a combination."""
    combiner = Combiner(CombinerConfig(classes=("a", "b"), **COMBINATIONS[name]))
    given, labels = masses(250)
    published = sha256()
    for begin in range(0, len(labels), batch):
        answers = combiner.step_many(given[:, begin : begin + batch], labels[begin : begin + batch])
        published.update(json.dumps([astuple(answer) for answer in answers]).encode())
        yield answers, published.digest() + combiner.snapshot()


def traces(name, batch=BATCH):
    each = of_combination if name in COMBINATIONS else of_predictor
    return [sha256(part).hexdigest() for _, part in each(name, batch)]


def machine():
    """Return what libraries and kernels take this machine for."""
    features, pools = numpy_build.__cpu_features__, threadpoolctl.threadpool_info()
    libm = sha256()
    for i in range(1, 2000):
        libm.update(repr((math.exp(-i / 100), math.log(i / 100))).encode())
    return {
        "blas": sorted({pool["architecture"] for pool in pools if "architecture" in pool}),
        "numpy": [name for name in numpy_build.__cpu_dispatch__ if features.get(name)],
        "level": LIBRARY.level,
        "libm": libm.hexdigest(),
        "time": time.tzname[0],
        "hash": hash("online"),
        "asserts": __debug__,
    }


def small():
    """Make refits short, and fit the scorer of exchangeability in streams of 400 examples."""
    learning.BANK_MODELS = 9
    monitor_set.ROWS_PER_SCORER = 100


def main(words):
    names = [word for word in words if word != "--trace"] or [*MODES, *COMBINATIONS]
    is_traced = "--trace" in words
    found = {name: traces(name, 1) if is_traced else traces(name)[-1] for name in names}
    libraries = {module.__name__: module.__version__ for module in (numpy, scipy, sklearn, orjson)}
    json.dump({"machine": machine(), "libraries": libraries, "digests": found}, sys.stdout)


if __name__ == "__main__":
    small()
    main(sys.argv[1:])
