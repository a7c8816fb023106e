"""Describe wrong settings in one line, without their values, because some are secrets."""

from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_PLAIN = {
    "Value error, ": "",
    "Input should be ": "must be ",
    "a valid dictionary": "label=weight,label=weight",
    "a valid tuple": "a list",
    "a valid string": "text",
    "String should have": "a text must have",
    "a valid ": "a ",
    "a integer": "an integer",
}


def explain(error: ValidationError) -> str:
    """Return what is wrong, one sentence for each setting.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> try:
    ...     PredictorConfig(features=0, gamma="wide")
    ... except ValidationError as error:
    ...     print(explain(error))
    setting gamma: must be a number or 'scale'; setting features: must be greater than or equal to 1
    """
    found: dict[str, list[ErrorDetails]] = {}
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        about = f"setting {item['loc'][0]}: " if item["loc"] else ""
        found.setdefault(about, []).append(item)
    return "; ".join(about + _sentence(items) for about, items in found.items())


def _sentence(items: Sequence[ErrorDetails]) -> str:
    """Return one sentence for a setting; pydantic reports an error for each form it may have."""
    faults = [item for item in items if not _is_another_form(item)]
    if faults and all(map(_is_of_words, faults)):
        # A word that no form has: name those of every form.
        words = [item for item in items if _is_of_words(item)]
        return " or ".join(_plain(words)).replace(" or must be ", " or ")
    if faults:
        return "; ".join(_plain(faults))
    return " or ".join(_plain(items)).replace(" or must be ", " or ")


def _is_another_form(item: ErrorDetails) -> bool:
    """Return whether the value has another form; the error for this form is then left out."""
    is_whole = len(item["loc"]) <= 2  # the setting and the form; a part of the value comes third
    return is_whole and item["type"].endswith(("_type", "_parsing", "literal_error"))


def _is_of_words(item: ErrorDetails) -> bool:
    return item["type"] == "literal_error"


def _plain(items: Sequence[ErrorDetails]) -> dict[str, None]:
    """Return the messages in plain words, each once, in order."""
    return dict.fromkeys(_reworded(item["msg"].partition(", unable to ")[0]) for item in items)


def _reworded(message: str) -> str:
    for technical, plain in _PLAIN.items():
        message = message.replace(technical, plain)
    return message
