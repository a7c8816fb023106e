"""Wheels and source archive of what is committed: the same bytes in every build.

The wheels are built from the unpacked source archive, one a platform, with Zig's compiler.
"""

import gzip
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from hashlib import sha256
from pathlib import Path, PurePosixPath

from scripts.building.compiler import levels
from scripts.building.sanitize import copy_of_head
from scripts.building.targets import SUFFIX, TARGETS

ROOT = Path(__file__).parents[2]
PACKAGES = ("online_svm", "workers")
TOP_FILES = {"LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"}
"""Files of the source archive next to packages and build code; the build adds metadata."""
BUILD_CODE = ("scripts/__init__.py", "scripts/building")
KERNELS = "online_svm/compiled"

ZIG = "ziglang==0.17.1"
"""One version: another compiler gives other machine code, which computes the same."""

_BUILD = """
import json, sys
sys.path.insert(0, ".")
from scripts.building import backend
kind, target, settings = sys.argv[1:]
print(getattr(backend, f"build_{kind}")(target, json.loads(settings)))
"""


class NotReleasable(Exception):
    """A check of the release that failed."""


def own_platform() -> str:
    """Return the platform of the wheel for this machine."""
    own = (sys.platform, platform.machine().lower())
    return next(name for name, target in TARGETS.items() if (target.system, target.machine) == own)


def checked(folder: Path, out: Path, platforms: Iterable[str]) -> list[Path]:
    """Build twice in different directories, compare and look inside; return the wheels in `out`."""
    python = _builder(folder / "builder")
    sdist, again = (_sdist(python, folder / name) for name in ("one", "another-directory/two"))
    _keep_equal(sdist, again, out)
    wheels = []
    for name in platforms:
        first, second = (
            _wheel(python, sdist, folder / place / name, name) for place in ("1", "another/2")
        )
        _check_wheel(first, name)
        wheels.append(_keep_equal(first, second, out))
    return wheels


def _keep_equal(first: Path, again: Path, out: Path) -> Path:
    """Copy an archive that was built twice to where the release goes."""
    data = first.read_bytes()
    if data != again.read_bytes():
        raise NotReleasable(f"{first.name}: two builds of one commit differ")
    out.mkdir(parents=True, exist_ok=True)
    kept = out.resolve() / first.name
    kept.write_bytes(data)
    print(f"{first.name}: {len(data) / 1e6:.2f} MB, sha256 {sha256(data).hexdigest()}, twice")
    return kept


def tracked(*below: str) -> set[str]:
    """Return the committed files below some paths."""
    command = ["git", "-C", str(ROOT), "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", *below]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {name for name in listed.split("\0") if name}


def _builder(place: Path) -> Path:
    """Make an environment that has what builds, and return its Python."""
    subprocess.run([sys.executable, "-P", "-m", "venv", place], check=True)
    python = place / "bin" / "python"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [*project["build-system"]["requires"], ZIG]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


def _sdist(python: Path, source: Path) -> Path:
    """Build the source archive from a copy of what is committed, in a directory."""
    _copy_of_head(source)
    sdist = _built(python, source, "sdist")
    sdist.write_bytes(repacked(sdist.read_bytes(), _time_of_head()))
    expected = tracked(*PACKAGES, *BUILD_CODE) | TOP_FILES
    with tarfile.open(sdist) as archive:
        names = {str(PurePosixPath(*PurePosixPath(member.name).parts[1:]))
                 for member in archive if member.isfile()}  # fmt: skip
    _compare(sdist.name, {name for name in names if not _is_metadata(name)}, expected)
    return sdist


def _wheel(python: Path, sdist: Path, place: Path, platform_name: str) -> Path:
    """Build the wheel of a platform from the source archive, unpacked in a directory."""
    place.mkdir(parents=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    (source,) = place.iterdir()
    return _built(python, source, "wheel", f"--plat-name={platform_name}")


def _built(python: Path, source: Path, kind: str, *options: str) -> Path:
    """Build an archive of the sources in a directory."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(_time_of_head())}
    environment.pop("PYTHONPATH", None)
    settings = json.dumps({"--build-option": list(options)})
    ended = subprocess.run(
        [str(python), "-c", _BUILD, kind, "dist", settings],
        cwd=source, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ended.returncode:
        raise NotReleasable(f"the build of the {kind} failed: {ended.stderr[-2000:]}")
    return source / "dist" / ended.stdout.split()[-1]


def _time_of_head() -> int:
    """Return when HEAD was committed, in seconds."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _copy_of_head(target: Path) -> None:
    """Write what is committed, with the rights that every build gives it."""
    target.mkdir(parents=True)
    copy_of_head(target)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def repacked(data: bytes, epoch: int) -> bytes:
    """Return a source archive without what differs from build to build: times, owners, order.

    setuptools takes SOURCE_DATE_EPOCH for wheels alone.
    """
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(data)) as source,
        gzip.GzipFile("", "wb", fileobj=packed, mtime=epoch) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=lambda member: member.name):
            member.mtime, member.mode = epoch, 0o755 if member.isdir() else 0o644
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.pax_headers = {}
            target.addfile(member, source.extractfile(member) if member.isfile() else None)
    return packed.getvalue()


def _check_wheel(wheel: Path, platform_name: str) -> None:
    """Hold the names in a wheel against what is committed, kernels compiled in place of C."""
    tracked_names = {name for name in tracked(*PACKAGES) if not name.endswith((".c", ".h"))}
    target = TARGETS[platform_name]
    modules = {f"{KERNELS}/_{level}{SUFFIX}" for level in levels(target.machine)}
    with zipfile.ZipFile(wheel) as opened:
        found = {name for name in opened.namelist() if not _is_metadata(name)}
    _compare(wheel.name, found, tracked_names | modules)


def _is_metadata(name: str) -> bool:
    first = name.partition("/")[0]
    return name in ("PKG-INFO", "setup.cfg") or first.endswith((".dist-info", ".egg-info"))


def _compare(archive: str, found: AbstractSet[str], expected: AbstractSet[str]) -> None:
    if found != expected:
        more, fewer = sorted(found - expected)[:5], sorted(expected - found)[:5]
        raise NotReleasable(f"{archive}: has {more} and lacks {fewer} against what is committed")
