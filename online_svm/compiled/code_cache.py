"""The directory of kept machine code, under a name that changes with any of its sources.

numba asks only whether the file of a function has changed. But the machine code of a function holds
that of all the functions it calls, and the constants it reads, wherever they are defined. So the
name of a cached file here ends in a digest of the function's file and of every file of this package
that it imports, directly or not. What another version of the package compiled has another name and
is not found; it is deleted when the present version saves its own.
"""

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from inspect import getfile
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]  # ships no type information
import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache

PACKAGE = __name__.partition(".")[0]
ROOT = Path(__file__).resolve().parents[__name__.count(".") - 1]
"""Directory of the package."""

_COMPILER = f"{numba.__version__} {llvmlite.__version__}".encode()

# "from package.module import name, (other)" and "import package.module", at any depth of a file.
_IMPORT = re.compile(
    rf"^[ \t]*(?:from[ \t]+({PACKAGE}[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|.*)"
    rf"|import[ \t]+({PACKAGE}[\w.]*))".encode(),
    re.MULTILINE,
)
_DIGEST_DIGITS = 16
_CACHED = (".nbi", ".nbc")


def keep_code(compiled: Any) -> None:
    """Let a function that numba compiles keep its machine code between runs.

    Where no directory can be written, each run compiles anew, and a warning says so.
    """
    try:
        compiled._cache = PackageCache(compiled.py_func)  # type: ignore[no-untyped-call]  # as below
    except RuntimeError as error:
        warnings.warn(
            f"machine code cannot be kept, so each start compiles it: {error}; "
            "set NUMBA_CACHE_DIR to a directory that can be written",
            RuntimeWarning,
            stacklevel=3,
        )


@cache
def digest(path: Path) -> str:
    """Return the digest of a file and of all files of this package that it imports.

    Examples
    --------
    >>> len(digest(ROOT / "compiled" / "kernels.py"))
    16
    """
    total = sha256(_COMPILER)
    for source in sorted(sources(path)):
        total.update(_read(source)[0])
    return total.hexdigest()[:_DIGEST_DIGITS]


def sources(path: Path) -> set[Path]:
    """Return a file and all files of this package that it imports, directly or not.

    Examples
    --------
    >>> ROOT / "compiled" / "code_cache.py" in sources(ROOT / "compiled" / "kernels.py")
    True
    """
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            waiting += _read(source)[1]
    return found


@cache
def _read(path: Path) -> tuple[bytes, tuple[Path, ...]]:
    """Return the digest of one file, and the files of this package that it imports itself."""
    text = path.read_bytes()
    return sha256(text).digest(), tuple(_imported(text))


def _imported(text: bytes) -> Iterator[Path]:
    for module, names, whole in _IMPORT.findall(text):
        imported = (module or whole).decode()
        yield from _file_of(imported)
        for name in re.findall(rb"\w+", names):
            yield from _file_of(f"{imported}.{name.decode()}")


@cache
def _file_of(module: str) -> tuple[Path, ...]:
    """Return the file of a module of this package; none where the name is not one of a module."""
    place = ROOT.joinpath(*module.split(".")[1:])
    both = (place.with_name(f"{place.name}.py"), place / "__init__.py")
    return tuple(path for path in both if path.is_file())


class _Named(CompileResultCacheImpl):
    """numba's own cache, but for the names of its files."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.source = Path(getfile(function)).resolve()
        self.digest = digest(self.source)
        super().__init__(function)  # type: ignore[no-untyped-call]  # numba has no types

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        """Return how the names of all files of a function begin."""
        base = super().get_filename_base(fullname, abiflags)  # type: ignore[no-untyped-call]
        return f"{base}-{self.digest}"


class PackageCache(FunctionCache):
    """The kept machine code of one function; other versions' of the same file is deleted."""

    _impl_class = _Named

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the machine code for one signature; where that fails, a later start compiles it."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]  # as above
        except (OSError, RuntimeError):  # a full disk; seen under load: "no compiled object yet"
            return
        named: _Named = self._impl
        _delete_others(Path(self.cache_path), named.source, named.digest)


def _delete_others(directory: Path, source: Path, current: str) -> None:
    """Delete what other versions of a source, or sources that are gone, left for this Python."""
    python = f".py{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"
    for path in directory.iterdir():
        module, _, rest = path.name.partition(".")
        # Of one source file each directory holds the code of one present version.
        is_old = module == source.stem and f"{python}-{current}." not in rest
        is_orphan = not source.with_name(f"{module}.py").exists()
        if path.suffix in _CACHED and python in rest and (is_old or is_orphan):
            path.unlink(missing_ok=True)
