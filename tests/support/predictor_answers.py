"""What a predictor gives, sorted by kind and one by one; and a stream to give it."""

import numpy as np

from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.alarm import Alarm
from online_svm.stream.prediction import Prediction, PredictionBlock, ValidityReport


def stream(n, n_classes=2, seed=None):
    """Return rows of overlapping classes and their labels c0, c1, ..."""
    rng = np.random.default_rng(n_classes if seed is None else seed)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + codes[:, None], [f"c{code}" for code in codes]


def flat(answers):
    """Return all answers in order, each row of a block by itself."""
    found = []
    for answer in answers:
        is_block = isinstance(answer, PredictionBlock)
        found += [answer.row(i) for i in range(len(answer))] if is_block else [answer]
    return found


def rows(answers):
    """Return the predictions, one by one."""
    return [answer for answer in flat(answers) if isinstance(answer, Prediction)]


def reports(answers):
    return [answer for answer in answers if isinstance(answer, ValidityReport)]


def alarms(answers):
    return [answer for answer in answers if isinstance(answer, Alarm)]


def blocks(answers, status=None):
    """Return the blocks, or those of one status."""
    found = [answer for answer in answers if isinstance(answer, PredictionBlock)]
    return [block for block in found if status in (None, block.status)]


def said(predictor, X, labels, size=None):
    """Return all answers one by one; calls have so many rows."""
    found = []
    for begin in range(0, len(X), size or len(X)):
        part = slice(begin, begin + (size or len(X)))
        found += flat(predictor.step_many(X[part], labels[part]))
    return found


def answered(config, X, labels):
    """Return the blocks of answers that a new predictor gives by a model."""
    return blocks(OnlinePredictor(config).step_many(X, labels), "ok")
