"""Write docs/messages.md from the models in workers/message/schema.py; --check only compares."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from online_svm.stream.guarantee_reason import SENTENCES
from scripts.generated_page import write_or_check
from workers.feed.codes import CODES, EVENT_CODES, VERSION
from workers.message.schema import (
    STREAMS,
    AlarmsMessage,
    PredictionMessage,
    RejectedMessage,
)

TARGET = Path(__file__).parents[1] / "docs" / "messages.md"

_HEAD = f"# Messages\n\nSchema version {VERSION}. "

_INTRODUCTION = """\
Made from `workers/message/schema.py` by `scripts/make_message_docs.py`.

Entries of the Redis streams `out`, `met`, `alarms` and `events` of a feed `F` have one field, `p`:
a JSON object. Each input entry has exactly one answer, under the same entry ID. Payloads, except
`events`, depend on the examples alone: they have no time, no entry ID, no NaN or infinity. Each
number is the shortest decimal that reads back as the same 64-bit float.

Answers are rounded to six decimals. Numbers of classes are whole millionths; `probabilities` and
each of `maps` sum to 1, and an interval includes its probability. Scores and costs from 1e9 on are
not rounded. Reports are computed before the rounding.

The entry ID in `osvm:{F}:raised` is the time of an alarm, its field `alarm` the entry ID in
`alarms`; about a thousand are kept. `raised` and `events` are not in the digest.

A field without a type is a number; counts, positions and versions are integers. `?` means null or
absent, `[]` a list, `{}` an object by name; a pair is [lower, upper]. Answers, reports and alarms
have `seq` and `n`, answers also `id` and `traceparent` if their entry had them; every JSON message
has `v`, the schema version, which a change of meaning raises. Fields may be added: ignore unknown
ones.
"""
_TITLES = {
    "in": "Input: `osvm:{F}:in`",
    "out": "Answers: `osvm:{F}:out`",
    "met": "Reports: `osvm:{F}:met`",
    "alarms": "Alarms: `osvm:{F}:alarms`",
    "dlq": "Rejected input: `osvm:{F}:dlq`",
    "events": "Events: `osvm:{F}:events`",
}
_TYPES = {Any: "any", str: "text", bool: "boolean", int: "number", float: "number", bytes: "bytes"}

_COMMON = {
    "v",
    "id",
    "seq",
    "n",
    "traceparent",
}  # fields of most messages, as the introduction says

MAX_VALUES = 6  # values of a field that are named as its type; more are in its description

_ANSWER = PredictionMessage.model_validate(
    {
        "status": "ok", "id": "tx-1042", "seq": 1041, "n": 1040, "label": "spam",
        "lower": 0.93, "upper": 0.94, "probability": 0.935, "method": "venn",
        "interval_level": None, "classes": ["ham", "spam"], "probabilities": [0.065, 0.935],
        "intervals": [(0.06, 0.07), (0.93, 0.94)], "venn": [(0.06, 0.07), (0.93, 0.94)],
        "maps": {"platt": [0.08, 0.92], "isotonic": [0.05, 0.95], "binning": [0.1, 0.9]},
        "scores": [1.25], "svm_label": "spam", "category": 1, "category_size": 99, "model": 7,
        "calibration": 7, "taxonomy": 7, "guarantee": "exact", "about": None,
    }
)  # fmt: skip
_REJECTION = RejectedMessage(
    seq=1042, n=1041, code="not_finite", about={"case": "feature_nan", "feature": "age"}
)
_ALARMS = AlarmsMessage.model_validate(
    {
        "seq": 5049,
        "alarms": [
            {
                "n": 5040, "kind": "calibration", "scope": "overall", "name": None,
                "monitor": "tolerant", "log_wealth": 4.75, "threshold": 4.5, "since": 4000,
                "estimate": 0.0625, "lower": 0.03125, "upper": 0.09375, "announced": 0.25,
                "examples": 900, "action": "report", "moved": [],
            }
        ],
    }
)  # fmt: skip
_EXAMPLES = {
    PredictionMessage: _ANSWER,
    RejectedMessage: _REJECTION,
    AlarmsMessage: _ALARMS,
}


def render() -> str:
    """Return the page."""
    parts = [_HEAD + _INTRODUCTION]
    described: set[tuple[str, str]] = set()
    for stream, models in STREAMS.items():
        parts.append(f"## {_TITLES[stream]}\n")
        parts += [_section(model, described) for model in models]
    parts += [
        "## Reason codes\n",
        _list(CODES),
        "## Cases of rejections\n",
        "`online_svm.rejections.CASES` lists all cases by reason code, with the sentence of each, "
        "which\n`reason_of(about)` makes. Sentences may be improved; names and parameters stay.\n",
        "## Cases of guarantees\n",
        "`alarm` has fields of the [open alarm](explanation/monitors.md#alarms), and as `before` "
        "the case without it.\n",
        _list(SENTENCES),
        "## Codes of events\n",
        _list(EVENT_CODES),
    ]
    return "\n".join(parts)


def _section(model: type, described: set[tuple[str, str]]) -> str:
    """Return one model: what it is, the fields that are not described yet, and an example."""
    new: dict[tuple[str, str], list[str]] = {}
    again: list[str] = []
    for name, field in fields_of(model).items():
        shown, text = field.alias or name, field.description or ""
        if (shown, text) in described:
            again += [shown] * (shown not in _COMMON)
        else:
            kind = "" if text.startswith("Always") else type_text(field.annotation)
            new.setdefault((kind, text), []).append(shown)
    described.update((name, text) for (_, text), names in new.items() for name in names)
    text = f"### {model.__name__}\n\n{_prose(model)}\n\n"
    text += "".join(_line(names, *described_as) for described_as, names in new.items())
    if again:
        text += f"- As above: {', '.join(f'`{name}`' for name in again)}.\n"
    if model in _EXAMPLES:
        text += f"\n```json\n{_EXAMPLES[model].payload().decode()}\n```\n"
    return text


def _line(names: Sequence[str], kind: str, text: str) -> str:
    """Return the line of fields with one description."""
    kind, mark = kind.removesuffix("?"), "?" * kind.endswith("?")
    shown = ", ".join(f"`{name}`{mark}" for name in names)
    return f"- {shown}: {text}\n" if kind in ("", "number") else f"- {shown} ({kind}): {text}\n"


def fields_of(model: type) -> dict[str, FieldInfo]:
    """Return the fields of a model, or of a dataclass whose annotations describe them."""
    if issubclass(model, BaseModel):
        return model.model_fields
    assert is_dataclass(model)
    types = get_type_hints(model, include_extras=True)
    return {field.name: FieldInfo.from_annotation(types[field.name]) for field in fields(model)}


def _prose(model: type) -> str:
    text = (model.__doc__ or "").partition("Examples\n")[0]
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _list(described: Mapping[Any, str]) -> str:
    return "".join(f"- `{name}`: {text}\n" for name, text in described.items())


def type_text(annotation: Any) -> str:
    """Return an annotation in the notation that the page explains."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_text(arguments[0])
    if origin is Literal:
        named = ", ".join(f"`{value}`" for value in arguments)
        return named if len(arguments) <= MAX_VALUES else "text"
    if origin in (Union, UnionType):
        kinds = " or ".join(type_text(part) for part in arguments if part is not NoneType)
        return f"{kinds}?" if NoneType in arguments else kinds
    if origin is list or (origin is tuple and arguments[-1] is ...):
        return f"{type_text(arguments[0])}[]"
    if origin is tuple:
        return "pair"
    if origin is dict:
        return f"{{{type_text(arguments[1])}}}"
    return _TYPES.get(annotation) or f"[{annotation.__name__}](#{annotation.__name__.lower()})"


main = partial(write_or_check, TARGET, render, __doc__)


if __name__ == "__main__":
    sys.exit(main())
