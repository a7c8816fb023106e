"""From what the methods said over a stream to the figures of a table."""

from typing import Any

import numpy as np

from online_svm.metrics.cumulative import CumulativeValidity, paper_p_value
from online_svm.types import Bools, Floats, Ints
from scripts.papers.venn.protocol import Stream, Track

Result = dict[str, Any]


def measures(stream: Stream) -> dict[str, Result]:
    """Return the measures of every method of a stream, by method."""
    return {name: _measured(track, stream) for name, track in stream.tracks.items()}


def measured_batch(point: Floats, lower: Floats, upper: Floats, own: Ints, codes: Ints) -> Result:
    """Return accuracy, mean probabilities, p-values, log loss, Brier score and interval width.

    Parameters
    ----------
    point, lower, upper : ndarray of shape (m, n_classes)
    own : ndarray of shape (m,)
        The SVM's own class.
    codes : ndarray of shape (m,)
        True class.

    Returns
    -------
    dict
        For the label of the largest point probability ``accuracy``, ``probability``, ``lower``,
        ``upper``, ``paper_p`` (eq. 3's mean as the probability), ``midpoint_p`` (the middle of the
        interval instead, as section 4 says) and ``surplus`` (hits less probabilities, summed); for
        the SVM's own class the same with ``own_``; ``class_surplus``: occurrences less
        probabilities of each class; ``log_loss``, ``brier``, ``width``, ``steps``.
    """
    label = np.argmax(point, axis=1).astype(np.int64)
    chosen = np.arange(len(codes)), label
    middle = 0.5 * (lower + upper)
    validity = CumulativeValidity(intervals=True)
    validity.update(point, label, own, codes, lower=lower, upper=upper)
    report = validity.report()
    hits, own_hits = label == codes, own == codes
    return {
        "steps": len(codes),
        "accuracy": report.predicted.accuracy,
        "probability": report.predicted.probability,
        "lower": report.predicted.lower,
        "upper": report.predicted.upper,
        "paper_p": report.predicted.paper_p,
        "midpoint_p": _p_value(hits, middle[chosen]),
        "surplus": float((hits - point[chosen]).sum()),
        "own_accuracy": report.svm.accuracy,
        "own_probability": report.svm.probability,
        "own_paper_p": report.svm.paper_p,
        "own_surplus": float((own_hits - point[np.arange(len(codes)), own]).sum()),
        "class_surplus": (np.eye(point.shape[1])[codes] - point).sum(axis=0).tolist(),
        "log_loss": report.log_loss,
        "brier": report.brier,
        "width": float((upper - lower)[chosen].mean()),
    }


def _measured(track: Track, stream: Stream) -> Result:
    steps = np.array(track.steps)
    point, lower, upper = np.array(track.points), np.array(track.lower), np.array(track.upper)
    return measured_batch(point, lower, upper, stream.own[steps], stream.codes[steps])


def _p_value(hits: Bools, p: Floats) -> float:
    return paper_p_value(int(hits.sum()), float(p.sum()), float((p * (1.0 - p)).sum()))
