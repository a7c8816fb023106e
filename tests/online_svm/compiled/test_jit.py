"""Functions compile whichever of them is called first."""

import numpy as np

from online_svm.compiled.jit import inner, jit, making


def test_a_function_that_makes_an_array_compiles_within_one_that_counts_none(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    for decorate in (jit, making):

        @decorate
        def total(values):
            doubled = np.zeros(len(values))
            for i in range(len(values)):
                doubled[i] = 2.0 * values[i]
            return doubled.sum()

        @inner
        def half(values):
            return 0.5 * total(values)

        @jit
        def called(values):
            return half(values)

        assert called(np.array([1.0, 2.5])) == 3.5
