"""Refits: from a `RefitTask` through a `Learner` to a `RefitResult`.

The folder holds the feature encoder, the scaling, the committee and the refitters. It holds no
schedule and no calibration set (`predictor`) and no solver (`svm`). It may import every folder of
`online_svm` except `predictor`.
"""
