"""OnlinePredictor: the state machine that answers, scores, learns and refits, and its parts.

The folder holds answering, delayed labels, the refit schedule and the effect of monitors on the
guarantee. It holds no training of models (`refit`), no solver (`svm`) and no input or output. It
may import every other folder of `online_svm`.
"""

from online_svm.predictor.online_predictor import OnlinePredictor

__all__ = ["OnlinePredictor"]
