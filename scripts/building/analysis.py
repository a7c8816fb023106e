"""Hold the C files against their format, the static analysis and the warnings of each compiler.

The settings are `.clang-format` and `.clang-tidy` at the top of the tree.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from scripts.building.compiler import FLAGS, STRICT, architecture, compilers, is_zig, levels
from scripts.building.headers import include_flags
from scripts.building.kernels import PACKAGE, ROOT, sources
from scripts.building.targets import this_machine


def main() -> int:
    """Return 0 if no tool finds anything."""
    headers = sorted(PACKAGE.rglob("*.h"))
    files = [str(path.relative_to(ROOT)) for path in (*sources(), *headers)]
    formatted = _run(_program("clang-format"), "--dry-run", "--Werror", *files)
    analysed = _run(_program("clang-tidy"), "--quiet", *_c_files(), "--", *_flags(["clang"]))
    return (
        formatted
        or analysed
        or any(_warns(command) for command in compilers() if not is_zig(command))
    )  # Zig's compiler cannot check without compiling


def _warns(command: list[str]) -> int:
    """Return 0 if a compiler has no warning; each compiler has warnings of its own."""
    strict = [*STRICT, "-Wno-unused-command-line-argument", "-fsyntax-only"]
    return _run(*command, *FLAGS, *strict, *_flags(command), *_c_files())


def _c_files() -> list[str]:
    return [str(path.relative_to(ROOT)) for path in sources()]


def _flags(command: list[str]) -> list[str]:
    """Return the flags by which a compiler finds headers, at the highest level."""
    level, name = list(levels().items())[-1]
    include = include_flags(this_machine())
    return ["-std=c11", f"-DLEVEL={level}", *architecture(command, name), *include]


def _program(name: str) -> str:
    """Return a tool of this environment or of the machine."""
    beside = Path(sys.executable).with_name(name)
    program = str(beside) if beside.exists() else shutil.which(name)
    if program is None:
        raise SystemExit(f"{name} is not installed: pip install {name}")
    return program


def _run(*command: str) -> int:
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if ended.returncode:
        print(ended.stdout, ended.stderr)
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
