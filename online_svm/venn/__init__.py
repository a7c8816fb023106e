"""Inductive Venn prediction: from scores of a machine to multiprobabilities.

The folder has the taxonomies, the calibration sets that answer and grow, and the scikit-learn
estimator. It may import `svm`, `calibration`, `stream`, `compiled`, `errors` and `types`.
"""
