"""Refits: from a `RefitTask` through a `Learner` to a `RefitResult`.

The folder has the feature encoder, the scaling, the committee and the refitters. The schedule and
the calibration set are in `predictor`, the solvers in `svm`. The folder may import every other
folder of `online_svm` except `predictor`.
"""
