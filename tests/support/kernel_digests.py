"""Digests of what kernels compute on random inputs, held against those that were recorded.

A case is a function of a random generator: it makes one input, calls the kernel, and returns all
that the kernel returned or wrote. Cases of one folder of the package are in one module of
`kernel_cases`, under the names of the kernels. `python tests/support/kernel_digests.py AREA`
records, of the first inputs and of all of them.
"""

import json
import struct
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Case = Callable[[np.random.Generator], Any]

INPUTS, FIRST = 1_000, 150
KEPT = Path(__file__).parents[1] / "data" / "kernel_digests"
AREAS = sorted(path.stem for path in (Path(__file__).parent / "kernel_cases").glob("[a-z]*.py"))


def cases(area: str) -> dict[str, Case]:
    found: dict[str, Case] = import_module(f"kernel_cases.{area}").CASES
    return found


def kept(area: str, inputs: int) -> Path:
    """Return the file of the digests of so many inputs."""
    return KEPT / (f"{area}.json" if inputs == INPUTS else f"{area}.first.json")


def recorded(area: str, inputs: int = INPUTS) -> dict[str, str]:
    found: dict[str, str] = json.loads(kept(area, inputs).read_text())
    return found


def digest(case: Case, inputs: int = INPUTS) -> str:
    total = sha256()
    for seed in range(inputs):
        for part in _bytes_of(case(np.random.default_rng(seed))):
            total.update(part)
    return total.hexdigest()[:32]


def _bytes_of(value: Any) -> Iterator[bytes]:
    """Yield the bytes of arrays and numbers, nested in tuples or lists, with types and shapes.

    All NaN are one: IEEE 754 does not define their sign and payload.
    """
    if isinstance(value, tuple | list):
        for part in value:
            yield from _bytes_of(part)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype.str} {value.shape}".encode()
        yield (
            np.where(np.isnan(value), np.nan, value) if value.dtype.kind == "f" else value
        ).tobytes()
    elif isinstance(value, bool | np.bool_ | int | np.integer):
        yield str(int(value)).encode()
    elif isinstance(value, float | np.floating):
        yield struct.pack("<d", float("nan") if value != value else value)
    elif value is not None:
        raise TypeError(f"a case returned {type(value).__name__}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for count in (FIRST, INPUTS):
            found = {kernel: digest(case, count) for kernel, case in sorted(cases(name).items())}
            kept(name, count).write_text(json.dumps(found, indent=1) + "\n")
        print(name, len(found))
