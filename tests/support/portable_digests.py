"""Print as JSON what this machine is, and the digest of every mode: of all it publishes and keeps.

    python tests/support/portable_digests.py [--trace] [MODE ...]

With `--trace` each mode has a list of digests, one an entry: two lists show where two machines
part.
"""

import json
import math
import sys
import time
from dataclasses import astuple
from hashlib import sha256

import numpy
import orjson
import scipy
import sklearn
import threadpoolctl
from numba.core.registry import cpu_target
from numpy._core import _multiarray_umath as numpy_build
from portable_modes import COMBINATIONS, MODES, entries_of, masses
from pure_replay import replay

from online_svm.metrics.sequential import monitor_set
from online_svm.predictor.combiner import Combiner, CombinerConfig
from online_svm.refit import implied_training
from workers.config.settings import WorkerSettings

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
    """Return the digests of a mode after each batch."""
    each = of_combination if name in COMBINATIONS else of_predictor
    return [sha256(part).hexdigest() for _, part in each(name, batch)]


def machine():
    """Return what libraries and compiler take this machine for."""
    features, pools = numpy_build.__cpu_features__, threadpoolctl.threadpool_info()
    _, processor, more = cpu_target.target_context.codegen().magic_tuple()
    libm = sha256()
    for i in range(1, 2000):
        libm.update(repr((math.exp(-i / 100), math.log(i / 100))).encode())
    return {
        "blas": sorted({pool["architecture"] for pool in pools if "architecture" in pool}),
        "numpy": [name for name in numpy_build.__cpu_dispatch__ if features.get(name)],
        "compiler": f"{processor} {more}",
        "libm": libm.hexdigest(),
        "time": time.tzname[0],
        "hash": hash("online"),
        "asserts": __debug__,
    }


def small():
    """Make refits short, and fit the scorer of exchangeability in streams of 400 examples."""
    implied_training.MODELS = 9
    monitor_set.SCORER_KEPT = 100


def main(words):
    """Print what is asked for; all modes without names."""
    names = [word for word in words if word != "--trace"] or [*MODES, *COMBINATIONS]
    is_traced = "--trace" in words
    found = {name: traces(name, 1) if is_traced else traces(name)[-1] for name in names}
    libraries = {module.__name__: module.__version__ for module in (numpy, scipy, sklearn, orjson)}
    json.dump({"machine": machine(), "libraries": libraries, "digests": found}, sys.stdout)


if __name__ == "__main__":
    small()
    main(sys.argv[1:])
