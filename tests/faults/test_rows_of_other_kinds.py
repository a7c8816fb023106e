"""Odd rows, and hostile texts and names: answered, and bounded."""

import json
import time

import pytest

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.cells import HASH, sorts
from online_svm.stream.schema import MAX_LATE_NAMES
from workers.config.settings import Limits
from workers.message.decode import decode

BATCH = 1000
MIB = 1 << 20


class Feed:
    """A feed that gets rows, with the seconds that each batch took."""

    def __init__(self, row, **settings):
        self.row, self.sent, self.seconds, self.imputed = row, 0, [], []
        settings = {"classes": ("no", "yes"), "committee": "single"} | settings
        self.predictor = OnlinePredictor(PredictorConfig(**settings))

    def go_on(self, stop):
        while self.sent < stop:
            numbers = range(self.sent, min(stop, self.sent + BATCH))
            entries = [
                (b"%d-0" % (i + 1), [b"x", json.dumps(self.row(i)).encode(), b"y", self.label(i)])
                for i in numbers
            ]
            began = time.process_time()
            decoded = decode(entries, self.predictor.schema, Limits())
            assert not decoded.rejected
            result = self.predictor.process(decoded.batch(entries, self.sent))
            self.seconds.append(time.process_time() - began)
            for indices, block in result.answers:
                assert len(block) == len(indices)
                self.imputed += block.imputed.tolist()
            self.sent += len(entries)
        return self

    @staticmethod
    def label(i):
        return (b"no", b"yes")[i * 7919 % 5 > 2]

    @property
    def told(self):
        return {k: v.kind for k, v in self.predictor._engine.scoring.report(0).features.items()}


def test_one_row_of_ten_thousand_names_does_not_stop_a_feed():
    odd = {f"k{i}": i for i in range(9_990)}
    usual = Feed(lambda i: {"q": i % 7, "c": f"c{i % 5}"}).go_on(6_000)
    feed = Feed(lambda i: {"q": i % 7, "c": f"c{i % 5}"} | (odd if i == 2_500 else {})).go_on(6_000)
    assert len(feed.predictor.schema.known) == MAX_LATE_NAMES
    assert feed.told == usual.told == {"c": "category", "q": "number"}
    # A row that is held has 1,001 places now; it took minutes when the machines saw each.
    assert min(feed.seconds[4:]) < 20 * min(usual.seconds[4:])
    assert len(feed.predictor.snapshot()) < len(usual.predictor.snapshot()) + 20 * MIB


HOSTILE = {
    "surrogates": ("\ud800", "\udfff\ud800"),
    "NUL": ("a\0b", "a\0c"),
    "right to left": ("\u202eabc", "\u05d0\u05d1\u202c"),
    "long": ("x" * 100_000, "x" * 99_999 + "y"),
    "script": ("<script>", "'; DROP TABLE rows --"),
    "looks like a key": ("__proto__", "osvm:{feed}:in"),
    "blanks of other scripts": ("a\u2003b", "a\u00a0b"),
    "composed": ("\u00e9", "e\u0301"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_categories_and_hostile_names_are_names(name):
    texts = HOSTILE[name]
    names = [text[:250] for text in texts if "\0" not in text]
    feed = Feed(lambda i: {"t": texts[i % 2], "q": i % 3} | dict.fromkeys(names, i % 4))
    if name == "surrogates":  # no JSON holds them as UTF-8; as escapes it does
        assert json.dumps(texts[0]) == '"\\ud800"'
    feed.go_on(600)
    told = feed.told
    assert told.pop("t") == "category"
    assert set(told) == {"q", *names}
    (encoder,) = [feed.predictor.active.result.scaling.encoder]
    assert len(encoder.cells) == 2
    assert sorts(encoder.cells).tolist() == [1, 1]
    assert (encoder.cells.view("int64") & HASH != 0).all()
    assert feed.imputed == [0] * 600
