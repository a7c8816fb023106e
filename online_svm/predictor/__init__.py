"""OnlinePredictor, the one state machine, and its parts."""

from online_svm.predictor.online_predictor import OnlinePredictor

__all__ = ["OnlinePredictor"]
