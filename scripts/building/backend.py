"""The build backend: setuptools, and Zig's C compiler where the machine has none.

`pip` calls the functions of this module (PEP 517 and PEP 660). Only `ziglang` is added to what
setuptools asks for, and only where no compiler is found.
"""

from collections.abc import Mapping
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

from scripts.building.compiler import compiler

__all__ = [
    "build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable",
    "get_requires_for_build_sdist", "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable", "prepare_metadata_for_build_wheel",
]  # fmt: skip

ZIG = "ziglang>=0.13"


def get_requires_for_build_wheel(config_settings: Mapping[str, Any] | None = None) -> list[str]:
    """Return what a build of a wheel needs in addition to `build-system.requires`."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compiler_package()]


def get_requires_for_build_editable(config_settings: Mapping[str, Any] | None = None) -> list[str]:
    """Return what an editable installation needs in addition to `build-system.requires`."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compiler_package()]


def _compiler_package() -> list[str]:
    return [ZIG] if compiler() is None else []
