"""Kernels compiled ahead of time, and the arithmetic behind all answers.

The folder has the binding of C kernels, elementary and special functions, fixed-order sums, and
kernel values. It imports only `errors` and `types`.

The bytes of a feed are the same on any processor, C library and machine, because they come only
from operations that IEEE 754 defines to the last bit:

- additions, subtractions, multiplications, divisions, square roots, fused multiply-adds,
  comparisons, roundings and conversions, in an order that the source fixes. Kernels are C11 without
  fast-math and without contraction, so compilers neither reorder nor fuse them; numpy computes them
  element by element, Python with its own floats.
- exponentials, logarithms and statistical functions made of these operations (`elementary`,
  `special`).
- sums of floats in `ordered_sums`, in an order that a kernel fixes, by `np.cumsum` (term by term),
  or by `math.fsum` (the exact sum, rounded once).
- exact operations: sums of integers, minima and maxima, searches, stable sorts (unstable ones only
  if ties are interchangeable), `math.frexp` and `ldexp`.

Answers therefore use arrays and single operations of numpy, and `fma`, `sqrt`, `floor` and memory
copies of the C library, but nothing of scipy. From scikit-learn come only base classes of
estimators, which no feed uses. Code that only users call, or that evaluates whole runs
(`metrics.scores`, `explanation`), may use more. `tests/online_svm/compiled/test_own_arithmetic.py`
checks every file against this list.

A C file stands next to the Python file that calls it and has the same name; in `svm/exact` it has
the name of a step of the method. `kernel.h` explains how to declare a kernel, `binding.c` checks
every call, and `kernel.py` chooses the build for the processor.
"""
