"""Steps: what happens to examples and their labels, in the order of the entries.

What happens depends on the entries alone and on no answer, so it is written down first; the
predictor then follows it.

- ``answer``: an example is answered.
- ``learn``: an example whose answer was given before is learned.
- ``give_up``: an example is not learned: its horizon passed without a label, or it fell out.
- ``label``: the label of a waiting example came.
- ``correct``: the label of an example that was learned is another one.
- ``report``: as many examples were learned as a report covers.
"""

from typing import Literal, NamedTuple

from online_svm.predictor.pending_examples import PendingExample
from online_svm.stream.label_counts import LabelCounts

Kind = Literal["answer", "learn", "give_up", "label", "correct", "report"]


class Correction(NamedTuple):
    """The label of the learned example `n` is another one."""

    n: int
    label: str


class LabelStep(NamedTuple):
    """One thing that happens; see the head of this file.

    Attributes
    ----------
    kind : Kind
    example : PendingExample or None
        That it happens to.
    counts : LabelCounts or None
        Of a report.
    correction : Correction or None
    opens : int
        1 where an answer begins to wait for its label, -1 where it waits no longer, else 0.
    """

    kind: Kind
    example: PendingExample | None = None
    counts: LabelCounts | None = None
    correction: Correction | None = None
    opens: int = 0
