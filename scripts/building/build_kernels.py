"""The step of a setuptools build that compiles the kernels."""

from pathlib import Path

from setuptools.command.build_ext import build_ext

from scripts.building.kernels import PACKAGE, build
from scripts.building.targets import TARGETS, Target


class BuildKernels(build_ext):
    """Build one extension module a level, in the place where setuptools collects them."""

    def run(self) -> None:
        """Build in the checkout for an editable installation, else below `build_lib`."""
        into = PACKAGE / "compiled"
        if not self.inplace:
            into = Path(self.build_lib).resolve() / "online_svm" / "compiled"
        objects = Path(self.build_temp).resolve() / "kernels"
        self._built = build(into, objects=objects, target=self._target())

    def _target(self) -> Target | None:
        wheel = self.distribution.get_command_obj("bdist_wheel", create=False)
        name = getattr(wheel, "plat_name", None)
        return None if name is None else TARGETS.get(str(name))

    def get_outputs(self) -> list[str]:
        """Return the extension modules that were built."""
        return [str(path) for path in self._built]

    def get_output_mapping(self) -> dict[str, str]:
        """Return nothing: an editable installation finds the extension modules in the checkout."""
        return {}
