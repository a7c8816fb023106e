"""Errors of the library.

OnlineSVMError
├── InvalidConfig      (also ValueError)   a setting that cannot work
├── InvalidExample     (also ValueError)   an example that cannot be answered; carries a reason code
├── InvalidSnapshot    (also ValueError)   bytes that this version cannot continue from
└── InvalidInput       (also ValueError)   an argument of a method that cannot be used
"""

import os
import sys
import warnings
from pathlib import Path
from typing import Any

from online_svm.rejections import CASES, CODES, SENTENCES, sentence

_FOLDER = f"{Path(__file__).parent}{os.sep}"

SHOWN = 40  # maximum number of characters of an input that an error message repeats


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line of the caller's own code, however many methods of this package it called.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("y: a class is absent")
    >>> caught[0].filename.startswith("<doctest")
    True
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class OnlineSVMError(Exception):
    """Base class of every error the library raises on purpose.

    Examples
    --------
    >>> from online_svm import OnlineCalibrator
    >>> try:
    ...     OnlineCalibrator().fit([0.2, 0.9], ["no", "no"])
    ... except OnlineSVMError as error:
    ...     print(type(error).__name__, isinstance(error, ValueError))
    InvalidInput True
    """


class InvalidConfig(OnlineSVMError, ValueError):
    """A setting, or a combination of settings, that cannot work."""


class InvalidInput(OnlineSVMError, ValueError):
    """An unusable argument of a method; the message names it and how to fix it."""


class InvalidSnapshot(OnlineSVMError, ValueError):
    """Bytes that are not a snapshot, or not one of this version and configuration."""


class InvalidExample(OnlineSVMError, ValueError):
    """An example that cannot be answered. The predictor's state is unchanged.

    Parameters
    ----------
    case : str
        One of `online_svm.rejections.SENTENCES`.
    **given : str, int, float or list of str
        The parameters in the sentence of the case.

    Attributes
    ----------
    case : str
    code : str
        Machine-readable reason, one of `REJECTION_CODES`.
    reason : str
        One sentence for people: the fault, and the input that would be accepted.

    Examples
    --------
    >>> error = InvalidExample("feature_nan", feature="age")
    >>> error.code, error.reason, error.about
    ('not_finite', "feature 'age' is NaN; send a finite number", \
{'case': 'feature_nan', 'feature': 'age'})
    """

    def __init__(self, case: str, **given: Any) -> None:
        self.case, self.code = case, CODES[case]
        self.reason = sentence(SENTENCES[case], given)
        self._given = given
        super().__init__(self.reason)

    @property
    def about(self) -> dict[str, Any]:
        """The case and its parameters as JSON values."""
        return {"case": self.case} | {name: _storable(v) for name, v in self._given.items()}

    def of_feature(self, name: str) -> "InvalidExample":
        """Return the error as a case about this feature."""
        return InvalidExample(f"feature_{self.case}", feature=name, **self._given)

    def alone(self) -> "InvalidExample":
        """Return a copy without the traceback, which would keep all parsed data alive."""
        return InvalidExample(self.case, **self._given)


def _storable(value: Any) -> Any:
    """Make texts encodable as UTF-8: a JSON text may contain a lone surrogate."""
    if isinstance(value, list):
        return [_storable(part) for part in value]
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


REJECTION_CODES = tuple(CASES)
"""Codes of rejected entries."""
