"""Numeric libraries use one thread in each process of the tests; conftest.py imports this first.

Several test processes share the processors. A thread that waits for a part of a small product spins
meanwhile, which took a quarter of the processor time of the predictor's tests. The libraries read
these variables when they are loaded; child processes inherit them.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
