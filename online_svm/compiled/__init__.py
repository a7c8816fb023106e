"""Compilation of kernels, and the arithmetic that all answers are made of.

The bytes of a feed are the same on any processor, C library and machine, since nothing computes
them but what IEEE 754 defines to the last bit:

- additions, subtractions, multiplications, divisions, square roots, fused multiply-adds,
  comparisons, roundings and conversions, in an order that the source fixes. numba compiles them
  without fast-math, so they are neither reordered nor fused; numpy computes them element by
  element, Python with its own floats.
- `elementary` and `special`: exponentials, logarithms and functions of statistics, made of those.
- sums of floats: in `ordered_sums`, in a kernel's own order, by `np.cumsum` (one after the other),
  or by `math.fsum` (the exact sum, rounded once).
- what has no rounding: sums of integers, minima and maxima, searches, stable sorts (others only
  where ties are alike), `math.frexp` and `ldexp`.

So of numpy there are arrays and single operations on them; of numba, LLVM's translation of these;
of scipy nothing; of scikit-learn the base classes of estimators, which no feed uses. What only
users call, or what looks at whole runs (`metrics.scores`, `explanation`), may use more.
`tests/online_svm/compiled/test_own_arithmetic.py` reads every file for what is not on this list.
"""
