"""Inductive Venn prediction: from scores of a machine to multiprobabilities.

Here live the taxonomies, the calibration sets that answer and grow, and the scikit-learn estimator.
The machines (`svm`) and the other calibrators (`calibration`) live elsewhere. May import `svm`,
`calibration`, `stream`, `compiled`, `errors` and `types`.
"""
