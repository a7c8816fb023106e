"""Write deploy/lock: exact versions, as installed here, of all that online-svm needs, with hashes.

`service.txt` has the library and the extra `[service]`; `archive.txt`, `excel.txt`, `http.txt`,
`otel.txt`, `ray.txt` and `dev.txt` add what their extras bring. No index is named: pip takes the
files from its configured one, and refuses a file with another hash.
"""

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "deploy" / "lock"
EXTRAS = ("service", "archive", "excel", "http", "otel", "ray", "dev")

_HEAD = """\
# The versions that the tests ran with, by `make lock`. To install them, and then online-svm:
#     python -m pip install --require-hashes -r deploy/lock/{extra}.txt
#     python -m pip install --no-deps .
"""


def declared(extra: str, root: Path = ROOT) -> list[Requirement]:
    """Return what pyproject.toml asks for by an extra, without the library and other extras."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    texts = list(project["optional-dependencies"][extra])
    if extra == "service":
        texts += project["dependencies"]
    found = [Requirement(text) for text in texts]
    return [requirement for requirement in found if requirement.name != project["name"]]


def locked(wanted: Iterable[Requirement]) -> dict[str, str]:
    """Return name and version of the wanted packages and all they need, sorted by name."""
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


def pins() -> dict[str, dict[str, str]]:
    """Return name and version of what the file of each extra lists."""
    found = {extra: locked(declared(extra)) for extra in EXTRAS}
    service = found["service"]
    return {
        extra: {n: v for n, v in names.items() if extra == "service" or n not in service}
        for extra, names in found.items()
    }


def read(extra: str, folder: Path = TARGET) -> dict[str, str]:
    """Return name and version of what the file of an extra lists itself."""
    lines = (folder / f"{extra}.txt").read_text("utf-8").splitlines()
    return dict(line.removesuffix(" \\").split("==") for line in lines if "==" in line)


def _is_new(requirement: Requirement, found: Mapping[str, str]) -> bool:
    return canonicalize_name(requirement.name) not in found


def _needed(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    """Yield the requirements of an installed package that hold on this machine."""
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def _hashed(names: Mapping[str, str]) -> str:
    """Return lines that pin versions, with the hash of every file that the index has of them."""
    lines = "".join(f"{name}=={version}\n" for name, version in names.items())
    command = [sys.executable, "-P", "-m", "uv", "pip", "compile", "-", "--quiet", "--no-deps"]
    command += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return done.stdout


def main(arguments: list[str] | None = None) -> int:
    """Write the files; return 2 where something is not installed, or uv fails."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    TARGET.mkdir(exist_ok=True)
    try:
        for extra, names in pins().items():
            begins = "" if extra == "service" else "-r service.txt\n"
            text = _HEAD.format(extra=extra) + begins + _hashed(names)
            (TARGET / f"{extra}.txt").write_text(text, "utf-8")
    except PackageNotFoundError as error:
        print(f"{error}: run this in the environment that make test makes", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"uv: {error.stderr}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
