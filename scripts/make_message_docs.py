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

from online_svm.rejections import CASES
from scripts.generated_page import write_or_check
from workers.message import VERSION
from workers.message.codes import CODES, EVENT_CODES, JOIN_CODES, UNAVAILABLE_CODES
from workers.message.compact import ABSENT, CONSTANTS, DERIVED, NUMBERS, ROWS, TEXTS
from workers.message.schema import (
    STREAMS,
    AlarmsMessage,
    CombinedMessage,
    CombinedSource,
    CompactMessage,
    DuplicateMessage,
    EventMessage,
    LabelMessage,
    PredictionMessage,
    RejectedMessage,
    UnavailableMessage,
)

TARGET = Path(__file__).parents[1] / "docs" / "messages.md"

_HEAD = f"# Messages\n\nSchema version {VERSION}. "

_INTRODUCTION = """\
Made from `workers/message/schema.py` by `scripts/make_message_docs.py`.

A feed `F` has six streams in Redis. Entries of `out`, `met`, `alarms` and `events` have one field,
`p`: a compact JSON object, its keys in the order below. Each input entry has exactly one answer,
under the same entry ID. Payloads, but for `events`, are a function of the examples alone: they hold
no time, no entry ID, and neither NaN nor infinities. Numbers are written so that the same 64-bit
float can be read back.

`osvm:{F}:raised` tells when alarms were committed: the ID of the alarm in the field `alarm`, under
an ID by the clock of Redis. It keeps about a thousand. `osvm:{F}:req` and `osvm:{F}:ans:<id>` are
of [scorers](scale.md#scorers). Neither is part of the digest.

Fields may be added: ignore those you do not know. A change of meaning raises `v`. A field that
means the same in several messages is described once, in the first.
"""
_TITLES = {
    "in": "Input: `osvm:{F}:in`",
    "out": "Answers: `osvm:{F}:out`",
    "met": "Validity reports: `osvm:{F}:met`",
    "alarms": "Alarms: `osvm:{F}:alarms`",
    "dlq": "Rejected input: `osvm:{F}:dlq`",
    "events": "Events: `osvm:{F}:events`",
    "req": "Requests to scorers: `osvm:{F}:req`",
    "ans": "Answers of scorers: `osvm:{F}:ans:<id>`",
}
_TYPES = {
    Any: "any value",
    str: "text",
    bool: "true or false",
    int: "integer",
    float: "number",
    bytes: "bytes",
    NoneType: "null",
}

MAX_VALUES = 6  # values of a field that are named as its type; more have a table

_ANSWER = PredictionMessage.model_validate(
    {
        "status": "ok", "id": "tx-1042", "seq": 1041, "n": 1040, "label": "spam",
        "lower": 0.93, "upper": 0.94, "probability": 0.935, "method": "venn",
        "interval_level": None, "classes": ["ham", "spam"], "probabilities": [0.065, 0.935],
        "intervals": [(0.06, 0.07), (0.93, 0.94)], "venn": [(0.06, 0.07), (0.93, 0.94)],
        "maps": {"platt": [0.08, 0.92], "isotonic": [0.05, 0.95], "binning": [0.1, 0.9]},
        "scores": [1.25], "svm_label": "spam", "category": 1, "category_size": 99, "model": 7,
        "calibration": 7, "taxonomy": 7, "guarantee": "exact", "reason": None,
    }
)  # fmt: skip
_COMPACT = CompactMessage(
    id="tx-1042",
    seq=1041,
    c=[
        *(1040, 1, 1, 1, 99, 7, 7, 7, 0, None, 3, None, ["ham", "spam"]),
        *(935_000, 930_000, 940_000, 930_000, 940_000, 1.25),
    ],
)
_REJECTION = RejectedMessage(
    seq=1042, n=1041, code="not_finite", about={"case": "feature_nan", "feature": "age"}
)
_UNAVAILABLE = UnavailableMessage(
    id="tx-1044", code="stale", reason="the newest state is 2500 examples old, the bound is 2000"
)
_LABEL = LabelMessage(seq=1050, n=1041, example="tx-1042", label="spam", done="accepted")
_DUPLICATE = DuplicateMessage(id="tx-1042", seq=1043, n=1041, first=1041)
_COMBINATION = CombinedMessage.model_validate(
    {
        "status": "ok", "id": "tx-1042", "seq": 1041, "n": 1040, "label": "spam",
        "lower": 0.75, "upper": 1.0, "probability": 0.875, "method": "platt",
        "interval_level": None, "classes": ["ham", "spam"], "probabilities": [0.125, 0.875],
        "intervals": [(0.0, 0.25), (0.75, 1.0)], "venn": [(0.0, 0.25), (0.75, 1.0)],
        "maps": {"pignistic": [0.125, 0.875]}, "scores": [1.3862943611198906],
        "svm_label": "spam", "category": None, "category_size": 1000, "model": 0,
        "calibration": 13, "taxonomy": 0, "guarantee": "none",
        "reason": "sources that learned from the same labels are not independent evidence",
        "rule": "dempster",
        "sources": {
            "spam-rbf": CombinedSource(belief=0.5, plausibility=1.0),
            "spam-linear": CombinedSource(belief=0.5, plausibility=1.0),
        },
    }
)  # fmt: skip


_ALARMS = AlarmsMessage.model_validate(
    {
        "seq": 5049,
        "alarms": [
            {
                "n": 5040, "kind": "calibration", "scope": "overall", "name": None,
                "monitor": "tolerant", "log_wealth": 4.75, "threshold": 4.5, "since": 4000,
                "estimate": 0.0625, "lower": 0.03125, "upper": 0.09375, "action": "report",
                "moved": [],
            }
        ],
    }
)  # fmt: skip
_EVENT = EventMessage(
    code="snapshot_unusable", writer="host-a", epoch=3, detail="at 1042-0: it is gone"
)


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
        "Of a combination, in `out` and `dlq` of the feed it writes; a dead letter there has the "
        "number of\nthe letter as its entry ID, and an answer of a source as its head:\n",
        _list(JOIN_CODES),
        "## Cases of rejections\n",
        "By their reason code, with the sentence that `reason` is. Its parameters stand in braces, "
        "as Python\nformats them. A sentence may be improved at any time; names and parameters "
        "stand.\n",
        *(f"`{code}`:\n\n{_list(cases)}" for code, cases in CASES.items()),
        "## Codes of events\n",
        _list(EVENT_CODES),
        "## Codes of requests\n",
        "A request that cannot be used is `rejected`, with a code of the first table.\n",
        _list(UNAVAILABLE_CODES),
    ]
    return "\n".join(parts)


def _section(model: type, described: set[tuple[str, str]]) -> str:
    """Return one model: what it is, the fields that are not described yet, and an example."""
    fields = {
        (field.alias or name, field.description or ""): type_text(field.annotation)
        for name, field in fields_of(model).items()
    }
    new = {
        f"{name}` ({kind})": text
        for (name, text), kind in fields.items()
        if (name, text) not in described
    }
    again = [name for name, text in fields if (name, text) in described]
    described.update(fields)
    text = f"### {model.__name__}\n\n{_prose(model)}\n\n{_list(new)}"
    if again:
        text += f"\nAs above: {', '.join(f'`{name}`' for name in again)}.\n"
    stored = (
        _ANSWER, _COMPACT, _REJECTION, _DUPLICATE, _LABEL, _COMBINATION, _ALARMS, _EVENT,
        _UNAVAILABLE,
    )  # fmt: skip
    examples = {type(example): example for example in stored}
    if model is CompactMessage:
        text += _compact_form()
    if model in examples:
        text += f"\n```json\n{examples[model].payload().decode()}\n```\n"
    return text


def fields_of(model: type) -> dict[str, FieldInfo]:
    """Return the fields of a model, or of a dataclass whose annotations describe them."""
    if issubclass(model, BaseModel):
        return model.model_fields
    assert is_dataclass(model)
    types = get_type_hints(model, include_extras=True)
    return {field.name: FieldInfo.from_annotation(types[field.name]) for field in fields(model)}


def _compact_form() -> str:
    """Return what the values of `c` are, and what of a full answer is not among them."""
    places = {place.name: place.meaning for place in (*ROWS, *CONSTANTS, *NUMBERS)}
    texts = "".join(f"- {number}: {text}\n" for number, text in enumerate(TEXTS))
    return f"""
The values of `c`:

{_list(places)}
k is 1 for two classes, else the number of classes. Of two classes the numbers belong to the
second; the first has a million less them, the ends of an interval exchanged. Of a full
answer {_listed(DERIVED)}
follow from these values; {_listed(ABSENT)} are left out.

The texts by number:

{texts}"""


def _listed(names: Sequence[str]) -> str:
    """Return names as code, as a list in a sentence."""
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} and {last}"


def _prose(model: type) -> str:
    text = (model.__doc__ or "").partition("Examples\n")[0]
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _list(described: Mapping[Any, str]) -> str:
    """Return names, each perhaps with its type after a backtick, and what they mean."""
    return "".join(
        f"- `{name}{'' if '`' in name else '`'}: {text}\n" for name, text in described.items()
    )


def type_text(annotation: Any) -> str:
    """Return an annotation in the words of JSON."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_text(arguments[0])
    if origin is Literal:
        named = " or ".join(f"`{value}`" for value in arguments)
        return named if len(arguments) <= MAX_VALUES else "text"
    if origin in (Union, UnionType):
        return " or ".join(type_text(part) for part in arguments)
    if origin is list or (origin is tuple and arguments[-1] is ...):
        inner = type_text(arguments[0])
        return f"list of ({inner})" if " or " in inner else f"list of {inner}"
    if origin is tuple:
        return f"[{', '.join(type_text(part) for part in arguments)}]"
    if origin is dict:
        inner = type_text(arguments[1])
        is_nested = get_origin(arguments[1]) is dict
        return f"object, ({inner}) by name" if is_nested else f"object, {inner} by name"
    return _TYPES.get(annotation) or f"[{annotation.__name__}](#{annotation.__name__.lower()})"


main = partial(write_or_check, TARGET, render, __doc__)


if __name__ == "__main__":
    sys.exit(main())
