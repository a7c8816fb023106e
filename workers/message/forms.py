"""The forms of an answer, by the names that the setting `payload` has for them."""

from collections.abc import Sequence

from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Ints
from workers.config.settings import Payload
from workers.message.compact.encode import encode_compact
from workers.message.encode import encode_block


def encode_answers(
    block: PredictionBlock,
    seqs: Sequence[int] | Ints,
    ids: Sequence[str | None],
    form: Payload = "full",
) -> list[bytes]:
    """Return the payloads of a block of predictions in a form; see `encode_block`.

    Raises
    ------
    ValueError
        If a number to be published is not finite.
    """
    encode = encode_compact if form == "compact" else encode_block
    return encode(block, seqs, ids)
