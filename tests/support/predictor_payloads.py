"""What a predictor gives, as it is sent: for comparisons byte by byte."""

from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock, ValidityReport
from workers.message.encode import encode_alarms, encode_block, encode_report


def payloads(answers, seq=0):
    """Return what comes out as it is sent, in order; an answer does not show its block."""
    found = []
    for answer in answers:
        if isinstance(answer, PredictionBlock):
            rows = range(seq, seq + len(answer))
            found += encode_block(answer, rows, [None] * len(answer))
            seq += len(answer)
        elif isinstance(answer, ValidityReport):
            found.append(encode_report(answer, seq - 1))
        else:
            found.append(encode_alarms([answer], seq - 1))
    return found


def in_batches(config, X, y, size):
    """Return the payloads of rows that come in batches."""
    predictor, found = OnlinePredictor(config), []
    for i in range(0, len(y), size):
        found += payloads(predictor.step_many(X[i : i + size], y[i : i + size]), i)
    return found
