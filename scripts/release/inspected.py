"""Inspect the extension modules of a wheel: their imports, exports and embedded paths."""

import re
import zipfile
from pathlib import Path
from typing import NamedTuple

import lief
from abi3info import DATAS, FUNCTIONS
from abi3info.models import PyVersion, Symbol

from scripts.building.targets import SUFFIX
from scripts.release.archives import KERNELS, NotReleasable

OLDEST_PYTHON = PyVersion(3, 11)
OLDEST_GLIBC = (2, 28)

ALLOWED_LIBRARIES = {
    "manylinux": r"libc\.so\.6|libm\.so\.6",
    "musllinux": r"libc\.so",
    "macosx": r"/usr/lib/libSystem\.B\.dylib|_\w+\.abi3\.so",  # and its own name
}
"""Libraries that all systems of a platform have, by the beginning of the platform's name."""

_MACOS_MARKS = {
    "__mh_dylib_header",
    "___dso_handle",
}  # of the file itself: every module of macOS has them
_PATH = re.compile(rb"/(?:home|root|tmp|work|opt|mnt|Users|var|build)/[\w./-]+")


class Module(NamedTuple):
    """What an extension module declares."""

    libraries: list[str]  # that it needs
    imports: set[str]  # symbols
    exports: set[str]
    glibc: list[tuple[int, ...]]  # versions of the symbols of the C library


def check(wheel: Path) -> None:
    """Inspect each extension module of a wheel."""
    *_, python, abi, platform = wheel.stem.split("-")
    _expect(wheel.name, "tags", (python, abi), ("cp311", "abi3"))
    allowed = re.compile(
        next(ALLOWED_LIBRARIES[name] for name in ALLOWED_LIBRARIES if platform.startswith(name))
    )
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name.endswith(SUFFIX)}
    for name, data in files.items():
        where = f"{wheel.name}: {name}"
        module = declared(data)
        entry = f"PyInit_{name.removeprefix(f'{KERNELS}/').removesuffix(SUFFIX)}"
        _expect(where, "symbols", module.exports, {entry})
        _expect(where, "libraries", [x for x in module.libraries if not allowed.fullmatch(x)], [])
        _expect(where, "uses Python", any(x.startswith("Py") for x in module.imports), True)
        _expect(
            where, "not of the stable ABI", {x for x in module.imports if not is_stable(x)}, set()
        )
        _expect(where, "glibc", [version for version in module.glibc if version > OLDEST_GLIBC], [])
        _expect(where, "paths", _PATH.findall(data), [])
    print(f"{wheel.name}: {len(files)} extension modules, as they should be")


def declared(data: bytes) -> Module:
    """Read the tables of an extension module of Linux or macOS."""
    binary = lief.parse(list(data))
    if isinstance(binary, lief.MachO.Binary):  # whose names of C begin with an underscore
        exports = {str(symbol.name) for symbol in binary.exported_symbols} - _MACOS_MARKS
        return Module(
            [str(library.name) for library in binary.libraries],
            {str(symbol.name)[1:] for symbol in binary.imported_symbols},
            {name[1:] for name in exports},
            [],
        )
    if not isinstance(binary, lief.ELF.Binary):
        raise NotReleasable("an extension module is of no format that is known")
    versions = [
        tuple(map(int, str(used.name).removeprefix("GLIBC_").split(".")))
        for library in binary.symbols_version_requirement
        for used in library.get_auxiliary_symbols()
    ]
    return Module(
        [str(library) for library in binary.libraries],
        # `imported_symbols` lacks symbols without a version, as Python's are.
        {str(x.name) for x in binary.dynamic_symbols if x.shndx == 0 and x.name},
        {str(symbol.name) for symbol in binary.exported_symbols},
        versions,
    )


def is_stable(name: str) -> bool:
    """Return whether a symbol is none of Python's, or in its stable ABI since 3.11 or before."""
    if not name.startswith(("Py", "_Py")):
        return True
    known = FUNCTIONS.get(Symbol(name)) or DATAS.get(Symbol(name))
    return known is not None and known.added <= OLDEST_PYTHON


def _expect(where: str, what: str, found: object, expected: object) -> None:
    if found != expected:
        raise NotReleasable(f"{where}: {what}: {found}, expected {expected}")
