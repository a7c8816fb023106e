"""Settings as text: parse flags, variables and files; explain a validation error in one line."""

import re
import shlex
from collections.abc import Sequence
from typing import Any, get_args, get_origin

import orjson
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from workers.errors import BadConfiguration

_WORDS = re.compile(r"[\w.+-]+( [\w.+-]+)*")

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


def parse_text(name: str, field: FieldInfo, text: str) -> Any:
    """Return the value of a text; numbers stay text, which the model converts.

    ``none`` is None if the setting may be None, ``a,b,c`` a list, ``a=1,b=2`` a map, and
    ``a:b=5,b:a=1`` a map of maps; see `rows`. Lists and maps may also be JSON: ``["a,b", "c"]``.

    Raises BadConfiguration for text that begins like JSON but is not JSON.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> fields = PredictorConfig.model_fields
    >>> parse_text("classes", fields["classes"], "ham,spam")
    ['ham', 'spam']
    >>> parse_text("committee", fields["committee"], "single")
    'single'
    >>> parse_text("window", fields["window"], "none") is None
    True
    >>> parse_text("costs", fields["costs"], "a:b=5,b:a=1")
    {'a': {'a': '0', 'b': '5'}, 'b': {'b': '0', 'a': '1'}}
    """
    kinds = kinds_of(field.annotation)
    stripped = text.strip()
    if stripped.lower() == "none" and type(None) in kinds:
        return None
    if stripped in kinds:  # a word that the setting accepts
        return stripped
    if stripped[:1] in ("[", "{") and {tuple, dict} & kinds:
        return _json(name, stripped)
    if dict in kinds and "=" in stripped:
        pairs = [_pair(name, part) for part in stripped.split(",")]
        return rows(name, pairs) if has_rows(field.annotation) else dict(pairs)
    if tuple in kinds and not (int in kinds and stripped.isdecimal()):
        return [part.strip() for part in stripped.split(",") if part.strip()]
    return text


def option(name: str, value: Any) -> str:
    """Return the command-line option that sets a value, quoted for a shell.

    Examples
    --------
    >>> option("classes", ["false", "true"]), option("refit_every", None)
    ('--classes false,true', '--refit-every none')
    >>> print(option("classes", ["a,b", "c"]))
    --classes '["a,b","c"]'
    """
    return f"--{name.replace('_', '-')} {shlex.quote(text_of(value))}"


def text_of(value: Any) -> str:
    """Return the text that `parse_text` turns into a value."""
    if value is None:
        return "none"
    if not isinstance(value, list | dict):
        return str(value)
    # A list of one name is written as JSON: alone it could be read as a number or as none.
    is_plain = len(value) > 1 and all(_WORDS.fullmatch(item) for item in value)
    are_rows = isinstance(value, dict) and any(isinstance(row, dict) for row in value.values())
    if not is_plain or are_rows:
        return orjson.dumps(value).decode()
    return ",".join(value if isinstance(value, list) else (f"{k}={v}" for k, v in value.items()))


def has_rows(annotation: Any) -> bool:
    """Return whether an annotation takes a map of maps."""
    parts = get_args(annotation)
    if get_origin(annotation) is dict:
        return dict in kinds_of(parts[1])
    return any(has_rows(part) for part in parts)


def rows(name: str, pairs: Sequence[tuple[str, str]]) -> dict[str, dict[str, str]]:
    """Return a map of rows: the key ``a:b`` sets b in row a, the key ``b`` sets b in every row.

    A row is 0 at its own name by default, since the right action costs nothing. Raises
    BadConfiguration if no key names a row.
    """
    split = [(*key.rpartition(":")[::2], value) for key, value in pairs]
    found = {row: {row: "0"} for row, _, _ in split if row}
    if not found:
        raise BadConfiguration(
            f"setting {name}: write LABEL:ACTION=COST,LABEL:ACTION=COST, as a:b=5,b:a=1, or JSON"
        )
    for row, column, value in split:
        for target in [row] if row else found:
            found[target][column] = value
    return found


def kinds_of(annotation: Any) -> set[Any]:
    """Return the members of a union, or the single type; parameters of containers are dropped."""
    origin = get_origin(annotation)
    if origin in (tuple, dict):
        return {origin}
    parts = get_args(annotation)
    if not parts:
        return {annotation}
    return set[Any]().union(*(kinds_of(part) for part in parts))


def _json(name: str, text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadConfiguration(f"setting {name}: not JSON: {error.msg}") from None


def _pair(name: str, part: str) -> tuple[str, str]:
    key, equals, value = part.partition("=")
    if not equals:
        raise BadConfiguration(f"setting {name}: write label=weight,label=weight")
    return key.strip(), value.strip()


def explain(error: ValidationError) -> str:
    """Return an error as text, one sentence for each setting.

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
        prefix = f"setting {item['loc'][0]}: " if item["loc"] else ""
        found.setdefault(prefix, []).append(item)
    return "; ".join(prefix + _sentence(items) for prefix, items in found.items())


def _sentence(items: Sequence[ErrorDetails]) -> str:
    """Return a sentence for a setting; pydantic reports an error for each member of its union."""
    faults = [item for item in items if not _is_type_mismatch(item)]
    if faults and not all(map(_is_wrong_word, faults)):
        return "; ".join(_plain(faults))
    # No member of the union matches: name the alternatives. For a wrong word, only the words.
    alternatives = [item for item in items if _is_wrong_word(item)] if faults else items
    return " or ".join(_plain(alternatives)).replace(" or must be ", " or ")


def _is_type_mismatch(item: ErrorDetails) -> bool:
    """Return whether the value as a whole is of another type than this member of the union."""
    is_whole = len(item["loc"]) <= 2  # setting and member; for a part of the value a third follows
    return is_whole and item["type"].endswith(("_type", "_parsing", "literal_error"))


def _is_wrong_word(item: ErrorDetails) -> bool:
    return item["type"] == "literal_error"


def _plain(items: Sequence[ErrorDetails]) -> dict[str, None]:
    """Return the distinct messages in plain words, in order."""
    return dict.fromkeys(_reworded(item["msg"].partition(", unable to ")[0]) for item in items)


def _reworded(message: str) -> str:
    for technical, plain in _PLAIN.items():
        message = message.replace(technical, plain)
    return message
