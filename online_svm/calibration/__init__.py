"""Calibrators: maps from the scores of an SVM to class probabilities.

Platt scaling, isotonic regression, binning, Venn-Abers prediction and the joint maps of all classes
live here; `evidential` holds maps to belief functions. Metrics, the choice of calibration examples
and the refit schedule do not belong here. May import `compiled`, `storage`, `types` and `errors`.
"""
