"""Kernel support vector machines over a stream.

The folder has the exact solver (`exact`), the banks of the implied posterior, the P-SVM and their
scikit-learn estimators. It may import `calibration`, `stream`, `storage`, `compiled`, `config`,
`errors` and `types`.
"""
