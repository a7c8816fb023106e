"""What every sequential test here has in common."""

from typing import Protocol

from online_svm.types import Arrays, Bools, Floats


class SequentialTest(Protocol):
    """Tests that may be looked at after every value, and stopped at will.

    Each is continued by `from_state`, as `storage.state` describes.
    """

    @property
    def log_wealth(self) -> Floats:
        """Natural logarithm of the wealth of each test."""
        ...

    @property
    def rejected(self) -> Bools:
        """Whether each test has rejected its null."""
        ...

    def update(self, values: Floats, /) -> object:
        """Add rows of values, in order."""
        ...

    def state(self) -> Arrays:
        """Return everything that the tests continue from."""
        ...
