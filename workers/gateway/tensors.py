"""Convert tensors of the Open Inference Protocol v2 to rows, and answers to tensors."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workers.gateway.refused import Refused, wrong

Row = list[Any] | dict[str, Any]
Tensor = dict[str, Any]

_INTEGERS = tuple(f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
_TYPES: dict[str, set[type]] = {
    "BOOL": {bool},
    **{name: {int} for name in _INTEGERS},
    "FP32": {int, float},
    "FP64": {int, float},
    "BYTES": {str},
}
DATATYPES = tuple(_TYPES)
"""Names of the types that a tensor may have."""

_MATRIX = [{"name": "x", "datatype": "FP64", "shape": [-1, -1]}]
_KINDS = {"number": "FP64", "boolean": "BOOL"}

MAX_ROWS = 1000
"""Largest number of examples or labels in one request."""

MAX_NAME_CHARS = 1 << 22
"""Largest number of characters of the feature names in all rows of a request: each row repeats
the names."""

OUTPUTS = [
    {"name": "label", "datatype": "BYTES", "shape": [-1]},
    {"name": "probability", "datatype": "FP64", "shape": [-1]},
    {"name": "lower", "datatype": "FP64", "shape": [-1]},
    {"name": "upper", "datatype": "FP64", "shape": [-1]},
    {"name": "probabilities", "datatype": "FP64", "shape": [-1, -1]},
    {"name": "status", "datatype": "BYTES", "shape": [-1]},
    {"name": "entry", "datatype": "BYTES", "shape": [-1]},
]
"""The output tensors; `entry` has the IDs of the entries, for the plain routes."""


def model_inputs(features: Mapping[str, Mapping[str, Any]]) -> list[Tensor]:
    """Return the input tensors of a model: one for each named feature, else a matrix.

    Examples
    --------
    >>> model_inputs({"country": {"kind": "category"}})
    [{'name': 'country', 'datatype': 'BYTES', 'shape': [-1]}]
    """
    named = [
        {"name": name, "datatype": _KINDS.get(str(report.get("kind")), "BYTES"), "shape": [-1]}
        for name, report in features.items()
    ]
    return named or _MATRIX


def inputs(request: Any) -> list[Mapping[str, Any]]:
    """Return the input tensors of a request. Raises Refused: 422 with the name of the field."""
    if not isinstance(request, dict):
        raise wrong("the body", "send a JSON object with inputs")
    found = request.get("inputs")
    if not isinstance(found, list) or not found or not all(isinstance(i, dict) for i in found):
        raise wrong("inputs", "send a list of one tensor or more")
    seen: set[str] = set()
    for i, tensor in enumerate(found):
        name = tensor.get("name")
        if not isinstance(name, str) or name in seen:
            raise wrong(f"inputs[{i}].name", "send a text that no other input has")
        seen.add(name)
    return found


def rows(tensors: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Convert tensors to rows.

    A single tensor of two dimensions is a matrix with one row per example. Otherwise each tensor is
    a named feature of shape [n] or [n, 1]. Raises Refused: 422 with the name of the field; 413 for
    too many rows.

    Examples
    --------
    >>> rows([{"name": "x", "shape": [2, 2], "datatype": "FP64", "data": [1, 2, 3, 4]}])
    [[1, 2], [3, 4]]
    >>> rows([{"name": "age", "shape": [1], "datatype": "INT32", "data": [39]},
    ...       {"name": "country", "shape": [1, 1], "datatype": "BYTES", "data": [["de"]]}])
    [{'age': 39, 'country': 'de'}]
    """
    shapes = [_shape(tensor, i) for i, tensor in enumerate(tensors)]
    count = shapes[0][0]
    if len(tensors) == 1 and len(shapes[0]) == 2:
        width, values = shapes[0][1], _values(tensors[0], 0, shapes[0])
        return [values[i * width : (i + 1) * width] for i in range(count)]
    for i, shape in enumerate(shapes):
        if shape not in ([count], [count, 1]):
            raise wrong(f"inputs[{i}].shape", f"send [{count}], a value for each row")
    size = count * sum(len(tensor["name"]) for tensor in tensors)
    if size > MAX_NAME_CHARS:
        raise Refused("names_too_long", rows=count, found=size)
    columns = {t["name"]: _values(t, i, shapes[i]) for i, t in enumerate(tensors)}
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def labels(tensors: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the values of the tensor `label`. Raises Refused: 422 with the name of the field."""
    if [tensor["name"] for tensor in tensors] != ["label"]:
        raise wrong("inputs", "send one tensor, label")
    shape = _shape(tensors[0], 0)
    values = _values(tensors[0], 0, shape)
    if not values or None in values:
        raise wrong("inputs[0].data", "send a label for each row of the request")
    return values


def outputs(
    answers: Sequence[Mapping[str, Any]], entries: Sequence[str], wanted: Any
) -> list[Tensor]:
    """Convert answers in the full form, and the IDs of their entries, to tensors.

    `wanted` is the field `outputs` of the request: which tensors, in which order; None for all.
    Raises Refused: 422 for an unknown output.
    """
    classes = sorted(
        {label for answer in answers for label in answer.get("classes", [])},
        key=lambda label: (label is None, label or ""),
    )
    made: dict[str, Tensor] = {}
    for output in OUTPUTS:
        name = str(output["name"])
        data, shape = [answer.get(name) for answer in answers], [len(answers)]
        if name == "entry":
            data = list(entries)
        elif name == "probabilities":
            data, shape = _probabilities(answers, classes), [len(answers), len(classes)]
        made[name] = {"name": name, "datatype": output["datatype"], "shape": shape, "data": data}
    made["probabilities"]["parameters"] = {"classes": classes}
    return [made[name] for name in _wanted(wanted, made)]


def _probabilities(answers: Sequence[Mapping[str, Any]], classes: Sequence[Any]) -> list[Any]:
    """Return the flat matrix of probabilities; None while there are none."""
    flat: list[Any] = []
    for answer in answers:
        given = dict(zip(answer.get("classes", []), answer.get("probabilities", []), strict=False))
        flat += [given.get(label, 0.0 if given else None) for label in classes]
    return flat


def _wanted(wanted: Any, made: Mapping[str, Tensor]) -> list[str]:
    if wanted is None:
        return list(made)
    if not isinstance(wanted, list) or not all(isinstance(one, dict) for one in wanted):
        raise wrong("outputs", "send a list of objects with a name")
    names: dict[str, None] = {}
    for i, one in enumerate(wanted):
        name = one.get("name")
        if not isinstance(name, str) or name not in made:
            raise wrong(f"outputs[{i}].name", f"there are {', '.join(made)}")
        if name in names:
            raise wrong(f"outputs[{i}].name", f"{name} is asked for twice")
        names[name] = None
    return list(names)


def check_outputs(wanted: Any) -> None:
    """Raise Refused for unknown outputs, before entries are added."""
    outputs([], [], wanted)


def _shape(tensor: Mapping[str, Any], i: int) -> list[int]:
    shape = tensor.get("shape")
    is_shape = isinstance(shape, list) and len(shape) in (1, 2)
    if not is_shape or not all(type(size) is int and size > 0 for size in shape or ()):
        raise wrong(f"inputs[{i}].shape", "send one or two positive integers")
    assert isinstance(shape, list)
    if shape[0] > MAX_ROWS:
        field = f"inputs[{i}].shape"
        raise Refused("too_many_rows", field=field, found=shape[0], most=MAX_ROWS)
    return shape


def _values(tensor: Mapping[str, Any], i: int, shape: Sequence[int]) -> list[Any]:
    kinds = _TYPES.get(str(tensor.get("datatype")))
    if kinds is None:
        raise wrong(f"inputs[{i}].datatype", f"known are {', '.join(_TYPES)}")
    data = tensor.get("data")
    if not isinstance(data, list):
        raise wrong(f"inputs[{i}].data", "send an array")
    if len(shape) == 2 and len(data) == shape[0] and all(isinstance(row, list) for row in data):
        if any(len(row) != shape[1] for row in data):
            raise wrong(f"inputs[{i}].data", f"send {shape[1]} values in each row")
        data = [value for row in data for value in row]
    if len(data) != math.prod(shape):
        raise wrong(
            f"inputs[{i}].data", f"{len(data)} values, but the shape needs {math.prod(shape)}"
        )
    if not set(map(type, data)) <= kinds | {type(None)}:
        raise wrong(f"inputs[{i}].data", f"a value is not of {tensor['datatype']}")
    return data
