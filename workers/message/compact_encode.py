"""Encode answers in the full or the compact form; see the setting `payload`."""

from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter

import numpy as np

from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats, Ints
from workers.config.settings import Payload
from workers.message import VERSION
from workers.message.compact import (
    BUDGET_FIELDS,
    CODED,
    COMPACT_KEY,
    CONSTANTS,
    COUNT_FIELDS,
    DECIMALS,
    DECISION_FIELDS,
    MILLION,
    ROWS,
    code,
    width,
)
from workers.message.encode import (
    action_texts,
    budget_texts,
    cost_texts,
    encode_block,
    id_parts,
    integers,
    interleave,
    literal,
    numbers,
)

_rows = attrgetter(*(item.name for item in ROWS))
_constant_values = attrgetter(*(item.name for item in CONSTANTS))

_LARGE = 1e9  # from here on a 64-bit float has hardly more than six decimals


def encode_answers(
    block: PredictionBlock,
    seqs: Sequence[int] | Ints,
    ids: Sequence[str | None],
    form: Payload = "full",
) -> list[bytes]:
    """Return the payloads of a block of predictions in a form; see `encode_block`."""
    encode = encode_compact if form == "compact" else encode_block
    return encode(block, seqs, ids)


def encode_compact(
    block: PredictionBlock, seqs: Sequence[int] | Ints, ids: Sequence[str | None]
) -> list[bytes]:
    """Return the payloads of a block of predictions, as `CompactMessage` describes them.

    Warming answers, which are few and short, have the full form.
    """
    if block.status != "ok":
        return encode_block(block, seqs, ids)
    counted = tuple(name for name in COUNT_FIELDS if getattr(block, name)[0] >= 0)
    decision = tuple(name for name in DECISION_FIELDS if getattr(block, name) is not None)
    budgeted = budget_texts(block)
    template = _template(_constant_values(block), counted, decision, bool(budgeted))
    texts = (
        id_parts(ids), integers(np.asarray(seqs, dtype=np.int64)),
        *(integers(getattr(block, name)) for name in counted),
        numbers(np.stack(_rows(block), axis=1)), numbers(_millionths(_probabilities(block))),
        numbers(rounded(block.scores)), *action_texts(block), *cost_texts(block), *budgeted,
    )  # fmt: skip
    return [template % row for row in zip(*texts, strict=True)]


# As for full answers, the template changes only with the model.
@lru_cache(maxsize=16)
def _template(
    constants: tuple[object, ...],
    counted: tuple[str, ...],
    decision: tuple[str, ...],
    is_budgeted: bool,
) -> bytes:
    names = (item.name for item in CONSTANTS)
    values = (
        code(value) if name in CODED else value  # type: ignore[arg-type]  # these are texts
        for name, value in zip(names, constants, strict=True)
    )
    common = b",".join(map(literal, values))
    decided = b"".join(b',"%b":%%b' % name.encode() for name in decision)
    more = b"".join(b'"%b":%%b,' % name.encode() for name in counted)
    head = b'{"v":%d,%%b"seq":%%b,%b"%b"' % (VERSION, more, COMPACT_KEY.encode())
    budget = b"".join(b',"%b":%%b' % name.encode() for name in BUDGET_FIELDS if is_budgeted)
    return head + b":[%%b,%b,%%b,%%b]" % common + decided + budget + b"}"


def _probabilities(block: PredictionBlock) -> Floats:
    """Return for each row the probabilities, then the bounds of the intervals."""
    m, classes = block.point.shape
    first = classes - width(classes)
    parts = (
        block.point[:, first:],
        interleave(block.lower[:, first:], block.upper[:, first:]).reshape(m, -1),
        interleave(block.venn_lower[:, first:], block.venn_upper[:, first:]).reshape(m, -1),
    )
    return np.concatenate(parts, axis=1)


def _millionths(probabilities: Floats) -> Ints:
    if not np.isfinite(probabilities).all():
        raise ValueError("a prediction holds a number that is not finite")
    return np.rint(probabilities * MILLION).astype(np.int64)


def rounded(values: Floats) -> Floats:
    """Return numbers rounded to `DECIMALS`; numbers from `_LARGE` on are unchanged.

    Examples
    --------
    >>> rounded(np.array([0.12345678, -1e-9, 1e300])).tolist()
    [0.123457, 0.0, 1e+300]
    """
    is_large = np.abs(values) >= _LARGE
    small = np.where(is_large, 0.0, values)
    return np.where(is_large, values, np.round(small, DECIMALS) + 0.0)
