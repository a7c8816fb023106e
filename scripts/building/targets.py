"""Targets of a build of the kernels: this machine, or a platform with a wheel in a release.

Any machine builds for any of these platforms, with Zig's C compiler.
"""

import platform
import sys
from typing import NamedTuple

from scripts.building.compiler import POSIX_FLAGS

SUFFIX = ".abi3.so"  # of extension modules


class Target(NamedTuple):
    """A kind of machine to build for."""

    system: str  # as `sys.platform`
    machine: str  # its kind of processor
    triple: str | None = None  # as Zig names it; None: this machine, by any compiler

    @property
    def compile_flags(self) -> list[str]:
        """The flags with which a C file is compiled for it."""
        return [*self._triple_flags, *POSIX_FLAGS]

    @property
    def link_flags(self) -> list[str]:
        """The flags with which object files are linked to an extension module of it."""
        flags = [*self._triple_flags, "-shared"]
        if self.system == "darwin":
            flags += ["-undefined", "dynamic_lookup"]  # Python, which loads the module, has them
        return flags

    @property
    def _triple_flags(self) -> list[str]:
        return [] if self.triple is None else ["-target", self.triple]


def this_machine() -> Target:
    """Return the machine that this process runs on."""
    return Target(sys.platform, platform.machine())


TARGETS = {
    "manylinux_2_28_x86_64": Target("linux", "x86_64", "x86_64-linux-gnu.2.28"),
    "manylinux_2_28_aarch64": Target("linux", "aarch64", "aarch64-linux-gnu.2.28"),
    "musllinux_1_2_x86_64": Target("linux", "x86_64", "x86_64-linux-musl"),
    "musllinux_1_2_aarch64": Target("linux", "aarch64", "aarch64-linux-musl"),
    "macosx_11_0_x86_64": Target("darwin", "x86_64", "x86_64-macos.11.0"),
    "macosx_11_0_arm64": Target("darwin", "arm64", "aarch64-macos.11.0"),
}
"""Targets of a release, by the platforms in the tags of its wheels."""
