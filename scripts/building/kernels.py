"""Build the kernels: one extension module a level, from all C files of `online_svm`.

`python -m scripts.building.kernels` builds in place, and only what has changed.
"""

import os
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from shutil import copy

from scripts.building.compiler import (
    FLAGS,
    STRICT,
    ZIG_LINK_FLAGS,
    architecture,
    compiler,
    is_zig,
    levels,
    zig,
)
from scripts.building.headers import include_flags
from scripts.building.targets import SUFFIX, Target, this_machine

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "online_svm"


def sources() -> list[Path]:
    """Return the C files of the package."""
    return sorted(PACKAGE.rglob("*.c"))


def build(
    into: Path,
    objects: Path = ROOT / "build" / "kernels",
    command: list[str] | None = None,
    flags: Iterable[str] = (),
    target: Target | None = None,
) -> list[Path]:
    """Build the extension modules of all levels; return their paths."""
    target = this_machine() if target is None else target
    if command is None:
        command = compiler() if target.triple is None else zig()
    if command is None:
        raise SystemExit("no C compiler was found: install gcc or clang, or pip install ziglang")
    return _Build(command, list(flags), target, objects).run(into)


class _Build:
    """The calls of one compiler for one target, as many at a time as there are processors."""

    def __init__(self, command: list[str], flags: list[str], target: Target, kept: Path) -> None:
        self._command = command
        self._flags = flags
        self._target = target
        self._kept = kept
        headers = include_flags(target, kept / "headers")
        self._compile = [*command, *FLAGS, *target.compile_flags, *flags, *headers]
        self._newest_header = max(path.stat().st_mtime for path in PACKAGE.rglob("*.h"))

    def run(self, into: Path) -> list[Path]:
        """Compile what has changed, link, and return the extension modules."""
        into.mkdir(parents=True, exist_ok=True)
        self._kept.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = {
                level: [pool.submit(self._object, level, name, source) for source in sources()]
                for level, name in levels(self._target.machine).items()
            }
            linked = [
                pool.submit(self._module, level, [one.result() for one in made])
                for level, made in objects.items()
            ]
            return [Path(copy(module.result(), into)) for module in linked]

    def _module(self, level: str, objects: list[Path]) -> Path:
        """Link a level where object files are kept: linkers leave other files next to a module."""
        module = self._kept / f"_{level}{SUFFIX}"
        flags = [*self._target.link_flags, *self._flags]
        if self._target.system == "darwin":
            flags.append(f"-Wl,-install_name,{module.name}")  # else its path, with the directory
        if is_zig(self._command):
            flags += ZIG_LINK_FLAGS
        self._run([*self._command, *flags, "-o", str(module), *map(str, objects), "-lm"])
        return module

    def _object(self, level: str, name: str | None, source: Path) -> Path:
        """Compile a C file unless its object file is newer than it and all headers."""
        call = [*self._compile, *architecture(self._command, name), f"-DLEVEL={level}"]
        kind = sha256("\0".join(call).encode()).hexdigest()[:8]
        made = self._kept / f"{level}-{kind}" / source.relative_to(PACKAGE).with_suffix(".o")
        newest = max(source.stat().st_mtime, self._newest_header)
        if not made.exists() or made.stat().st_mtime < newest:
            made.parent.mkdir(parents=True, exist_ok=True)
            # By a relative name: an absolute one would be kept in the object file.
            self._run([*call, "-c", source.relative_to(ROOT).as_posix(), "-o", str(made)])
        return made

    def _run(self, call: list[str]) -> None:
        environment = dict(os.environ)
        if is_zig(self._command):  # it keeps what it makes of its C libraries
            environment["ZIG_GLOBAL_CACHE_DIR"] = str(self._kept / "zig")
            environment["ZIG_LOCAL_CACHE_DIR"] = str(self._kept / "zig")
        if subprocess.run(call, cwd=ROOT, env=environment, check=False).returncode:
            raise SystemExit(f"the C compiler failed: {' '.join(call)}")


if __name__ == "__main__":
    for path in build(PACKAGE / "compiled", flags=STRICT):
        print(path.relative_to(ROOT))
