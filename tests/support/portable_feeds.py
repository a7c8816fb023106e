"""The digests of the oracle's feeds on this machine, of all that they publish and keep.

No machine may change one. As a program it prints as JSON what this machine is, and the digests.

    python tests/support/portable_feeds.py [--trace] [FEED ...]

With `--trace` each feed has a list of digests, one an entry: two lists show where machines part.
"""

import json
import math
import sys
import time
from hashlib import sha256

import numpy
import orjson
import scipy
import sklearn
import threadpoolctl
from numpy._core import _multiarray_umath as numpy_build
from oracle_feeds import feeds
from pure_replay import given_by, in_batches

from online_svm.compiled.kernel import LIBRARY
from online_svm.metrics.sequential import monitor_set


def traces(feed, batch=64):
    """Return a digest after each batch: of what was published, and of the state."""
    settings, entries = given_by(feed)
    outcomes = in_batches(settings.predictor, entries, settings.limits, batch)
    return [
        sha256(outcome.after.digest + predictor.snapshot()).hexdigest()
        for outcome, predictor in outcomes
    ]


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


def main(words):
    monitor_set.ROWS_PER_SCORER = 100  # so that short streams have several scorers
    known, is_traced = feeds(), "--trace" in words
    names = [word for word in words if word != "--trace"] or [*known]
    found = {
        name: traces(known[name], 1) if is_traced else traces(known[name])[-1] for name in names
    }
    libraries = {module.__name__: module.__version__ for module in (numpy, scipy, sklearn, orjson)}
    json.dump({"machine": machine(), "libraries": libraries, "digests": found}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
