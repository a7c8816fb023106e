"""Settings written as text: on a command line, in an environment variable, in a file."""

from typing import Any, get_args, get_origin

import orjson
from pydantic.fields import FieldInfo

from workers.errors import BadConfiguration


def parse_text(name: str, field: FieldInfo, text: str) -> Any:
    """Return what a text stands for; numbers stay text, which the model converts.

    ``none`` is None where a setting may be None, ``a,b,c`` a list, ``a=1,b=2`` a map; JSON
    (``["a,b", "c"]``) says what these cannot.

    Raises
    ------
    BadConfiguration
        For text that begins like JSON and is not.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> fields = PredictorConfig.model_fields
    >>> parse_text("classes", fields["classes"], "ham,spam")
    ['ham', 'spam']
    >>> parse_text("window", fields["window"], "none") is None
    True
    """
    kinds = kinds_of(field.annotation)
    stripped = text.strip()
    if stripped.lower() == "none" and type(None) in kinds:
        return None
    if stripped[:1] in ("[", "{") and {tuple, dict} & kinds:
        return _json(name, stripped)
    if dict in kinds and "=" in stripped:
        return dict(_pair(name, part) for part in stripped.split(","))
    if tuple in kinds and not (int in kinds and stripped.isdecimal()):
        return [part.strip() for part in stripped.split(",") if part.strip()]
    return text


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
