"""Wheel and source archive of what is committed: the same bytes whoever builds them."""

import gzip
import io
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Set as AbstractSet
from hashlib import sha256
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
PACKAGES = ("online_svm", "workers")
BESIDE = {"LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"}
"""What the source archive has beside the packages; the build adds its own metadata."""

_BUILD = "import sys; from setuptools import build_meta as b; print(b.build_{kind}(sys.argv[1]))"


class NotReleasable(Exception):
    """A check of the release that failed."""


def checked(folder: Path, out: Path) -> Path:
    """Build twice in different directories, compare and look inside; return the wheel in `out`.

    Raises
    ------
    NotReleasable
        If the two differ, or hold anything but what they should.
    """
    builder = _builder(folder / "builder")
    first = _built(builder, folder / "one")
    again = _built(builder, folder / "another-directory" / "two")
    for one, other in zip(first, again, strict=True):
        if one.read_bytes() != other.read_bytes():
            raise NotReleasable(f"{one.name}: two builds of one commit differ")
    sdist, wheel = first
    _check_contents(sdist, wheel)
    out.mkdir(parents=True, exist_ok=True)
    for path in first:
        data = path.read_bytes()
        (out / path.name).write_bytes(data)
        print(f"{path.name}: {len(data) / 1e6:.2f} MB, sha256 {sha256(data).hexdigest()}, twice")
    return out.resolve() / wheel.name


def tracked(*below: str) -> set[str]:
    """Return the committed files below some paths."""
    command = ["git", "-C", str(ROOT), "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", *below]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {name for name in listed.split("\0") if name}


def _builder(place: Path) -> Path:
    """Make an environment that has what builds, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    python = place / "bin" / "python"
    wanted = re.findall(r'"(setuptools[^"]*)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    subprocess.run([python, "-m", "pip", "install", "--quiet", wanted[0]], check=True)
    return python


def _built(python: Path, source: Path) -> tuple[Path, Path]:
    """Build what is committed, from a copy in a directory; return source archive and wheel."""
    _copy_of_head(source)
    epoch = _time_of_head()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    environment.pop("PYTHONPATH", None)
    made = []
    for kind in ("sdist", "wheel"):
        command = [str(python), "-c", _BUILD.format(kind=kind), "dist"]
        told = subprocess.run(
            command, cwd=source, env=environment, capture_output=True, text=True, check=False
        )
        if told.returncode:
            raise NotReleasable(f"the build of the {kind} failed: {told.stderr[-2000:]}")
        made.append(source / "dist" / told.stdout.split()[-1])
    made[0].write_bytes(repacked(made[0].read_bytes(), epoch))
    return made[0], made[1]


def _time_of_head() -> int:
    """Return when HEAD was committed, in seconds."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _copy_of_head(target: Path) -> None:
    """Write what is committed, with the rights that every build gives it."""
    target.mkdir(parents=True)
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "HEAD"], check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(target, filter="data")
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


def _check_contents(sdist: Path, wheel: Path) -> None:
    """Hold the names in both archives against what is committed."""
    packages = tracked(*PACKAGES)
    with zipfile.ZipFile(wheel) as opened:
        found = {name for name in opened.namelist() if not _is_metadata(name)}
    _compare(wheel.name, found, packages)
    with tarfile.open(sdist) as source:
        names = {str(PurePosixPath(*PurePosixPath(member.name).parts[1:]))
                 for member in source if member.isfile()}  # fmt: skip
    _compare(sdist.name, {name for name in names if not _is_metadata(name)}, packages | BESIDE)


def _is_metadata(name: str) -> bool:
    """Return whether the build wrote it.

    Examples
    --------
    >>> _is_metadata("online_svm-0.1.0.dist-info/METADATA"), _is_metadata("online_svm/types.py")
    (True, False)
    """
    first = name.partition("/")[0]
    return name in ("PKG-INFO", "setup.cfg") or first.endswith((".dist-info", ".egg-info"))


def _compare(archive: str, found: AbstractSet[str], expected: AbstractSet[str]) -> None:
    if found != expected:
        more, fewer = sorted(found - expected)[:5], sorted(expected - found)[:5]
        raise NotReleasable(f"{archive}: has {more} and lacks {fewer} against what is committed")
