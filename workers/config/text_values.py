"""Parse settings that are written as text: flags, environment variables, the file."""

import re
import shlex
from typing import Any, get_args, get_origin

import orjson
from pydantic.fields import FieldInfo

from workers.errors import BadConfiguration

_WORDS = re.compile(r"[\w.+-]+( [\w.+-]+)*")


def parse_text(name: str, field: FieldInfo, text: str) -> Any:
    """Return the value of a text; numbers stay text, which the model converts.

    ``none`` is None if the setting may be None, ``a,b,c`` a list, and ``a=1,b=2`` a map. JSON
    (``["a,b", "c"]``) can express every list and map.

    Raises
    ------
    BadConfiguration
        For text that begins like JSON but is not JSON.

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
    """
    kinds = kinds_of(field.annotation)
    stripped = text.strip()
    if stripped.lower() == "none" and type(None) in kinds:
        return None
    if stripped in kinds:  # one of the words that the setting may be
        return stripped
    if stripped[:1] in ("[", "{") and {tuple, dict} & kinds:
        return _json(name, stripped)
    if dict in kinds and "=" in stripped:
        return dict(_pair(name, part) for part in stripped.split(","))
    if tuple in kinds and not (int in kinds and stripped.isdecimal()):
        return [part.strip() for part in stripped.split(",") if part.strip()]
    return text


def option(name: str, value: Any) -> str:
    """Return the option of a command line, quoted for a shell, that gives a setting this value.

    Examples
    --------
    >>> option("classes", ["false", "true"]), option("refit_lag", None)
    ('--classes false,true', '--refit-lag none')
    >>> print(option("classes", ["a,b", "c"]))
    --classes '["a,b","c"]'
    """
    return f"--{name.replace('_', '-')} {shlex.quote(text_of(value))}"


def text_of(value: Any) -> str:
    """Return the text that `parse_text` reads as a value.

    Examples
    --------
    >>> text_of(None), text_of(["a", "b"])
    ('none', 'a,b')
    """
    if value is None:
        return "none"
    if not isinstance(value, list | dict):
        return str(value)
    # A single name could be read as a number or as none.
    is_plain = len(value) > 1 and all(_WORDS.fullmatch(item) for item in value)
    if not is_plain:
        return orjson.dumps(value).decode()
    return ",".join(value if isinstance(value, list) else (f"{k}={v}" for k, v in value.items()))


def kinds_of(annotation: Any) -> set[Any]:
    """Return the plain types in an annotation: those of a union, without their parameters.

    Examples
    --------
    >>> kinds_of(int | tuple[str, ...] | None) == {int, tuple, type(None)}
    True
    """
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
