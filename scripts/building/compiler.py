"""The C compiler of the kernels: which one, and with which flags.

The flags are part of the contract that a feed has the same bytes on every machine: no fast-math, no
fused multiply-add that the source does not ask for.

All compilers give the same bytes; the rule is about speed. clang is preferred, then gcc, then Zig's
clang, which the package index has. Their times as multiples of clang 14's, on a v4:

| what                                        | gcc 12    | Zig 0.17   |
|---------------------------------------------|-----------|------------|
| growing a forest: two classes, four         | .97, 1.00 | 1.13, 1.07 |
| the bins of its features                    | 1.28      | .97        |
| its answers: 64 rows, one row               | 2.36, .42 | 1.07, .98  |
| a ridge logistic regression                 | 1.23      | .97        |
| the stack of a committee                    | 1.15      | 1.14       |
| `ProbabilitySVC` (SMO) fitted to 2,500 rows | 1.00      | 1.00       |
| the build of all levels                     | 1.1       | 1.3        |

So a compiler that the machine has is used: Zig everywhere would gain nothing over it and be a
download of 100 MB. A release is built with Zig, for all platforms and for an old C library.
"""

import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
POSIX_FLAGS = ("-fPIC", "-fvisibility=hidden")
ZIG_LINK_FLAGS = ("-O3", "-s")
"""Zig compiles its own library with them when it links; `-s` leaves out the names of files."""

STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
"""Warnings for authors of C files. An installation uses none: later compilers have new warnings."""

WIDE_VECTORS = "-mprefer-vector-width=512"
"""Compilers use half of a v4's vectors by default; a kernel's scores take a fifth longer then."""

X86_LEVELS = {"v1": "x86-64", "v3": "x86-64-v3", "v4": "x86-64-v4"}
"""The levels of x86-64 processors, lowest first, as compilers name them."""


def levels(machine: str = platform.machine()) -> dict[str, str | None]:
    """Return the levels to build for a processor, each with the name of its instruction set."""
    if machine.lower() in ("x86_64", "amd64"):
        return dict(X86_LEVELS)
    return {"aarch64" if machine.lower() == "arm64" else machine.lower(): None}


def architecture(command: list[str], name: str | None) -> list[str]:
    """Return the flags of a compiler for an instruction set; Zig spells its name otherwise."""
    if name is None:
        return []
    wide = [] if name != X86_LEVELS["v4"] else [WIDE_VECTORS]
    return [f"-march={name.replace('-', '_') if is_zig(command) else name}", *wide]


def is_zig(command: list[str]) -> bool:
    """Return whether a command is Zig's C compiler."""
    return Path(command[0]).stem == "zig"


def compiler() -> list[str] | None:
    """Return the command of the C compiler: `$CC`, clang, gcc, cc or Zig's; None without any."""
    if "CC" in os.environ:
        return shlex.split(os.environ["CC"])
    return next(compilers(), None)


def compilers() -> Iterator[list[str]]:
    """Yield the commands of the C compilers that are found, the preferred one first."""
    for name in ("clang", "gcc", "cc"):
        if shutil.which(name) is not None and _compiles([name]):
            yield [name]
    if (command := zig()) is not None:
        yield command


def zig() -> list[str] | None:
    """Return the command of Zig's C compiler; None where `ziglang` is not installed."""
    spec = find_spec("ziglang")
    if spec is None or spec.origin is None:
        return None
    # The program itself: an interpreter for each C file would take longer than it.
    return [str(Path(spec.origin).with_name("zig.exe" if os.name == "nt" else "zig")), "cc"]


def _compiles(command: list[str]) -> bool:
    """Return whether a compiler can compile a program that needs the C library's headers."""
    program = b"#include <math.h>\n#include <stdint.h>\nint32_t one = 1;\n"
    call = [*command, "-x", "c", "-fsyntax-only", "-"]
    return subprocess.run(call, input=program, capture_output=True, check=False).returncode == 0
