"""The binding refuses every argument that a kernel could not bear, with a Python error."""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import online_svm
from online_svm.compiled.kernel import LIBRARY

SPECIFICATIONS: dict[str, str] = LIBRARY.specifications()

_DTYPES = {
    "f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32,
    "i16": np.int16, "u8": np.uint8, "bool": np.bool_,
}  # fmt: skip
_PARAMETER = re.compile(r"(\w+): *(\()?")
_KIND = re.compile(r"(=?)([\w|]+)(?:\[([^]]*)\]|(<=?)(\w+))?")


@dataclass
class Parameter:
    """One argument of a kernel; a tuple has members."""

    name: str
    kind: str = ""
    is_written: bool = False
    sizes: list[str] = field(default_factory=list)
    limit: str = ""
    members: list["Parameter"] = field(default_factory=list)

    @property
    def is_array(self) -> bool:
        return bool(self.sizes)


def parameters(name: str) -> list[Parameter]:
    found, rest = _level(SPECIFICATIONS[name].split("->")[0].strip())
    assert rest == ""
    return found


def _level(text: str) -> tuple[list[Parameter], str]:
    found: list[Parameter] = []
    while text and not text.startswith(")"):
        begin = _PARAMETER.match(text)
        assert begin, text
        text = text[begin.end() :]
        if begin[2]:
            members, text = _level(text)
            found.append(Parameter(begin[1], "tuple", members=members))
            text = text[1:].lstrip()
            continue
        kind = _KIND.match(text)
        assert kind, text
        sizes = kind[3].split(",") if kind[3] else []
        found.append(Parameter(begin[1], kind[2], kind[1] == "=", sizes, kind[5] or ""))
        text = text[kind.end() :].lstrip()
    return found, text


def valid(name: str, size: int) -> list[Any]:
    """Return arguments that a kernel takes: zeros, every size of which is `size`."""
    return [_value(parameter, size) for parameter in parameters(name)]


def _value(parameter: Parameter, size: int) -> Any:
    if parameter.kind == "tuple":
        return tuple(_value(member, size) for member in parameter.members)
    if parameter.is_array:
        shape = [_size(text, size) for text in parameter.sizes]
        return np.zeros(shape, dtype=_DTYPES[parameter.kind.split("|")[0]])
    return {"float": 0.5, "bool": False}.get(parameter.kind, 0)


def _size(text: str, size: int) -> int:
    if text == "*":
        return size
    factor, _, offset = re.fullmatch(r"(\d*)([a-zA-Z_]\w*)?([+-]\d+)?", text).groups()  # type: ignore[union-attr]
    if text.isdigit():
        return int(text)
    return int(factor or 1) * size + int(offset or 0)


PACKAGE = Path(online_svm.__file__).parent
NAMES = sorted(SPECIFICATIONS)
ERRORS = (TypeError, ValueError, IndexError, OverflowError)
SIZE = 4


def bound(name):
    return LIBRARY.bind(name, "", "tests")


def declared():
    """Yield the name and the parameters of each function that stands for a kernel."""
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and "kernel" in map(
                ast.unparse, node.decorator_list
            ):
                yield f"{module}.{node.name}", node


def with_one(arguments, i, value):
    return [*arguments[:i], value, *arguments[i + 1 :]]


def wrong_arrays(array, is_written):
    """Yield what no array parameter may be given in the place of a right one."""
    yield from (None, 1.0, "text", array.tolist(), np.zeros((2,) * (array.ndim + 1), array.dtype))
    yield array.astype(np.complex128)
    yield array.astype(array.dtype.newbyteorder())[()] if array.itemsize > 1 else None
    strided = np.repeat(array, 2, axis=-1)[..., ::2]
    yield None if strided.flags.c_contiguous else strided  # of one element, it is contiguous
    yield np.asfortranarray(np.zeros((3, 5), array.dtype)) if array.ndim == 2 else None
    if is_written:
        frozen = array.copy()
        frozen.flags.writeable = False
        yield frozen


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_refuses_a_wrong_number_of_arguments(name):
    arguments = valid(name, SIZE)
    with pytest.raises(TypeError, match="arguments, got"):
        bound(name)(*arguments[:-1])
    with pytest.raises(TypeError, match="arguments, got"):
        bound(name)(*arguments, None)


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_refuses_a_wrong_argument(name):
    arguments = valid(name, SIZE)
    for i, parameter in enumerate(parameters(name)):
        if parameter.is_array:
            for wrong in wrong_arrays(arguments[i], parameter.is_written):
                if wrong is None or not isinstance(wrong, np.ndarray) or wrong.ndim:
                    with pytest.raises(ERRORS, match=parameter.name):
                        bound(name)(*with_one(arguments, i, wrong))
        elif parameter.kind == "tuple":
            for wrong in (None, (), arguments[i][:-1], [*arguments[i]]):
                with pytest.raises(TypeError, match=parameter.name):
                    bound(name)(*with_one(arguments, i, wrong))
        elif parameter.kind != "bool":
            with pytest.raises(ERRORS):
                bound(name)(*with_one(arguments, i, "text"))


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_refuses_an_index_outside_of_its_array(name):
    arguments = valid(name, SIZE)
    for i, parameter in enumerate(parameters(name)):
        if parameter.limit:
            for wrong in (-1, SIZE + 1, 2**62, -(2**63)):
                with pytest.raises(IndexError, match=parameter.name):
                    bound(name)(*with_one(arguments, i, wrong))


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_refuses_sizes_that_do_not_agree(name):
    arguments = valid(name, SIZE)
    arrays = [(i, p) for i, p in enumerate(parameters(name)) if p.is_array]
    known = [size for _, p in arrays for size in p.sizes]
    for i, parameter in arrays:
        for axis, size in enumerate(parameter.sizes):
            if size.isdigit() or (size != "*" and known.count(size) > 1):
                longer = np.concatenate([arguments[i]] * 2, axis=axis)
                with pytest.raises(ERRORS):
                    bound(name)(*with_one(arguments, i, longer))


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_refuses_to_write_into_another_argument(name):
    arguments = valid(name, SIZE)
    arrays = [(i, p) for i, p in enumerate(parameters(name)) if p.is_array]
    for i, parameter in arrays:
        for j, _ in arrays:
            same = (arguments[i].dtype, arguments[i].shape) == (
                arguments[j].dtype,
                arguments[j].shape,
            )
            if i != j and parameter.is_written and same and arguments[i].size:
                with pytest.raises(ValueError, match="shares memory"):
                    bound(name)(*with_one(arguments, j, arguments[i]))


def test_every_kernel_has_its_function_with_the_same_parameters():
    found = {name: [arg.arg for arg in node.args.args] for name, node in declared()}
    assert found == {name: [p.name for p in parameters(name)] for name in NAMES}


def test_a_function_without_a_body_is_a_kernel():
    for _, node in declared():
        assert len(node.body) == 1
        assert ast.get_docstring(node)


def test_a_kernel_that_is_not_there_is_named():
    with pytest.raises(LookupError, match="no kernel is named nowhere"):
        LIBRARY.bind("nowhere", "", "tests")
