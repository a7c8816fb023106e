"""Blocks of predictions as hypothesis draws them: any numbers that a block may hold."""

import math

import numpy as np
from hypothesis import strategies as st

from online_svm.stream.guarantee_reason import GuaranteeReason
from online_svm.stream.prediction import PredictionBlock

probabilities = st.floats(0, 1)
labels = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)

REASONS = (None, GuaranteeReason("time"), GuaranteeReason("false_alarm", (("level", 0.01),)))


ids = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@st.composite
def blocks(draw):
    """Draw a block of answers of a model; two classes need not be each other's complement."""
    m, k = draw(st.integers(1, 4)), draw(st.integers(2, 4))
    unseen = draw(st.booleans())
    names = draw(st.lists(labels, min_size=k, max_size=k, unique=True))
    machines = 1 if k == 2 else k

    def floats(*shape, values=probabilities):
        flat = draw(st.lists(values, min_size=math.prod(shape), max_size=math.prod(shape)))
        return np.array(flat).reshape(shape)

    def integers(low, high):
        return np.array(draw(st.lists(st.integers(low, high), min_size=m, max_size=m)))

    maps = draw(st.lists(st.sampled_from(["platt", "isotonic", "50%"]), unique=True))
    bounded = draw(st.none() | st.lists(st.sampled_from(["venn-abers", "50%"]), unique=True))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    actions = draw(st.just(()) | st.lists(labels, min_size=1, max_size=3, unique=True))
    return PredictionBlock(
        status="ok",
        classes=(*names[:-1], None) if unseen else tuple(names),
        n=integers(0, 2**50),
        label=integers(0, k - 1),
        svm_label=integers(0, k - 1),
        point=floats(m, k),
        lower=floats(m, k),
        upper=floats(m, k),
        venn_point=floats(m, k),
        venn_lower=floats(m, k),
        venn_upper=floats(m, k),
        maps={name: floats(m, k) for name in maps},
        map_intervals=None if bounded is None else {name: floats(m, k, 2) for name in bounded},
        scores=floats(m, machines, values=finite),
        category=integers(0, k),
        category_size=integers(0, 10**6),
        imputed=integers(0, 99) if draw(st.booleans()) else np.full(m, -1),
        model=draw(st.integers(0, 10**6)),
        calibration=draw(st.integers(0, 10**6)),
        taxonomy=draw(st.integers(0, 10**6)),
        guarantee=draw(st.sampled_from(["exact", "approximate", "none"])),
        reason=draw(st.sampled_from(REASONS)),
        method=draw(st.sampled_from(["venn", "50%"])),
        interval_level=draw(st.none() | st.just(0.9)),
        actions=tuple(actions),
        action=integers(0, len(actions) - 1) if actions else None,
        expected_cost=floats(m, values=finite) if actions and draw(st.booleans()) else None,
        sets=floats(m, k) > 0.3 if draw(st.booleans()) else None,
    )
