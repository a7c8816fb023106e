"""Kernel support vector machines over a stream.

Here live the exact solver (`exact`), the banks of the implied posterior, the P-SVM and their
scikit-learn estimators. Calibrators, Venn predictors and the schedule of refits live elsewhere. May
import `calibration`, `stream`, `storage`, `compiled`, `config`, `errors` and `types`.
"""
