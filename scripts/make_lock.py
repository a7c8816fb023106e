"""Write deploy/requirements.lock: the exact version, here, of every package online-svm needs."""

import argparse
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "deploy" / "requirements.lock"

_HEAD = """\
# The versions that the tests ran with, those for development included. No index and no hashes stand
# here: pip takes both from the index it is told to use. Made, in the environment of `make test`, by
#     python scripts/make_lock.py
# Installed by
#     python -m pip install -r deploy/requirements.lock && python -m pip install --no-deps -e .
"""


def declared(root: Path = ROOT) -> list[Requirement]:
    """Return what pyproject.toml asks for, for users and for development."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    texts = (*project["dependencies"], *extras["service"], *extras["dev"])
    found = [Requirement(text) for text in texts]
    return [requirement for requirement in found if requirement.name != project["name"]]


def locked(wanted: Iterable[Requirement]) -> dict[str, str]:
    """Return name and installed version of the wanted packages and all they need, sorted by name.

    Raises
    ------
    PackageNotFoundError
        If one of them is not installed.
    """
    found: dict[str, str] = {}
    waiting = list(wanted)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name not in found:
            found[name] = distribution(name).version
        # Again where it was found before: another extra of it may be wanted here.
        waiting += [r for r in _needed(name, requirement.extras) if _is_new(r, found)]
    return dict(sorted(found.items()))


def _is_new(requirement: Requirement, found: dict[str, str]) -> bool:
    return canonicalize_name(requirement.name) not in found


def _needed(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    """Yield the requirements of an installed package that hold on this machine."""
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def main(arguments: list[str] | None = None) -> int:
    """Write the file; return 2 where something is not installed."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    try:
        lines = [f"{name}=={version}\n" for name, version in locked(declared()).items()]
    except PackageNotFoundError as error:
        print(f"{error}: run this in the environment that make test makes", file=sys.stderr)
        return 2
    TARGET.write_text(_HEAD + "".join(lines), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
