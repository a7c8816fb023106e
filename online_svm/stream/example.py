"""Example: features, and perhaps a label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from online_svm.types import Floats


@dataclass(frozen=True, slots=True)
class Example:
    """One entry of the stream.

    Parameters
    ----------
    x : sequence of float, or mapping from feature name to float
        The features: an array in the declared order, or named values. None is a missing value.
    y : str or int, optional
        The label.
    p : float, optional
        In its place, an annotator's probability that the label is the second of the two classes,
        for a learner that takes it ("psvm"). With neither the example is answered, not learned.
    id : str, optional
        By which its label can be sent later, where there is a horizon.
    time : int, optional
        Milliseconds, where the horizon counts time.
    slices : mapping from str to str, optional
        Values of the slices that the configuration names. They are no features.

    Examples
    --------
    >>> Example([0.5, 1.0], "spam").y
    'spam'
    """

    x: Sequence[float | None] | Floats | Mapping[str, float | None]
    y: str | int | None = None
    p: float | None = None
    id: str | None = None
    time: int | None = None
    slices: Mapping[str, str | None] | None = None
