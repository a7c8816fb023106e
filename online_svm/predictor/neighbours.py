"""Votes of nearest neighbours among the newest labelled examples."""

from online_svm.compiled.kernel import kernel
from online_svm.types import Bools, Floats, Ints

N_VOTES, KEPT_EXAMPLES = 3, 1000
"""Three votes: 5, 10 and 10 neighbours among the newest 100, 250 and 1,000 labelled examples."""


@kernel
def write_votes(
    held: tuple[Floats, Ints], size: int, rows: Floats, columns: Ints, asks: Bools, odds: Floats
) -> int:
    """Write the log-odds of the votes of each row's neighbours; a labelled row then joins them.

    `held`, shapes (d, room) and (room,): labelled examples, the oldest first, and their labels;
        `size` are in use.
    `rows`, shape (m, d).
    `columns`, shape (m,): labels; -1 for none.
    `asks`, shape (m,): whether to write the votes of a row.
    `odds`, shape (m, M + N_VOTES, S): the last N_VOTES inputs are written.
    Returns the new number of examples.
    """
