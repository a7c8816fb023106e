"""What a combination stores of a row that it cannot answer: a sentence or a case, by its number."""

import json

import pytest

from online_svm.predictor.combiner import Combiner, CombinerConfig
from workers.feed.position import START
from workers.session.join.answers import RowAnswerer
from workers.session.join.rows import JoinedRow, SourceAnswer

WHY = {
    4: ("reason", "feed 'two' has no answer to id 'tx-1' within 20 places"),
    5: ("about", {"case": "answer_missing", "feed": "two", "id": "tx-1", "places": 20}),
}


@pytest.mark.parametrize("semantics", WHY)
def test_a_row_without_an_answer_is_rejected_as_its_semantics_have_it(semantics):
    combiner = Combiner(CombinerConfig(classes=("a", "b"), semantics=semantics))
    first = SourceAnswer(b"1-0", b"0-0", 0, "tx-1", False, None, None, b"{}")
    row = JoinedRow([first, None], [])
    outcome = RowAnswerer(combiner, ["one", "two"], 20).process(START, [row])
    head = {"v": 2, "status": "rejected", "id": "tx-1", "seq": 0, "n": 0, "code": "unmatched"}
    name, why = WHY[semantics]
    assert json.loads(outcome.out[0]) == head | {name: why}
    (letter,) = outcome.dlq
    stored = letter.why if semantics == 4 else json.loads(letter.why)
    assert (letter.code, letter.name, stored) == ("unmatched", name, why)
