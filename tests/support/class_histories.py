"""Histories in which classes vanish, return or stay rare; margins are empty, or rows are equal."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

LABELS = ("a", "b", "c", "d")
ROWS = 200
"""Between two snapshots."""


class Part(NamedTuple):
    """Consecutive rows with the same classes."""

    rows: int
    classes: tuple[int, ...]  # indices of the classes that occur
    rare: float  # share of the rows that are not of the first of these classes
    place: str  # of the rows of a class


PLACES = ("overlapping", "apart", "equal")

ALONE = [Part(200, (0, 1), 0.5, "overlapping"), Part(400, (0,), 0.0, "overlapping")]
"""Two classes, then one of them for many windows of 80 rows."""


def parts(n_classes):
    """Draw the parts of a history of 600 rows of at most so many classes."""
    present = st.lists(st.integers(0, n_classes - 1), min_size=1, max_size=n_classes, unique=True)
    part = st.builds(
        Part, st.sampled_from((50, 150, 300)), present.map(tuple),
        st.sampled_from((0.01, 0.1, 0.5)), st.sampled_from(PLACES),
    )  # fmt: skip
    first = st.builds(
        Part, st.just(150), st.just(tuple(range(n_classes))), st.just(0.5), st.sampled_from(PLACES)
    )
    return st.tuples(first, st.lists(part, min_size=2, max_size=8)).map(lambda p: [p[0], *p[1]])


def rows_of(history, seed, most=600):
    """Return rows, shape (n, 2), and labels of the parts, repeated up to `most` rows."""
    rng, X, labels = np.random.default_rng(seed), [], []
    while sum(map(len, X)) < most:
        for part in history:
            others = rng.choice(part.classes, part.rows)
            codes = np.where(rng.random(part.rows) < part.rare, others, part.classes[0])
            spread = {"overlapping": 1.0, "apart": 0.01, "equal": 0.0}[part.place]
            X.append(codes[:, None] * [1.0, -1.0] + spread * rng.normal(size=(part.rows, 2)))
            labels += [LABELS[code] for code in codes]
    return np.concatenate(X)[:most], labels[:most]
