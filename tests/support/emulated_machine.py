"""Programs and packages of aarch64, which run emulated, and packages as pip installs them."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from system_tools import missing, tool

ROOT = Path(__file__).parents[2]
PYTHON = "3.11"


class Emulated(NamedTuple):
    """The command that runs a program of aarch64, and the directory of its Debian."""

    runs: list[str]
    debian: Path


def emulated_in(directory):
    emulator = tool("qemu-aarch64-static", "qemu-user-static")
    unpacked_debian(directory)
    return Emulated([emulator, "-L", str(directory)], directory)


def unpacked_debian(directory):
    """Unpack a Debian of aarch64 with its Python; nothing of it is run."""
    command = [tool("debootstrap", "debootstrap"), "--foreign", "--arch=arm64"]
    command += ["--variant=minbase", "--include=python3", "bookworm", str(directory)]
    subprocess.run(command, check=True, timeout=900, stdout=subprocess.DEVNULL)
    for package in (directory / "var/cache/apt/archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, directory], check=True, timeout=60)


def installed(directory, *requirements):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(directory)]
    command += ["--only-binary=:all:", *requirements]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        missing(f"needs a package index: {done.stderr[-300:]}")


def on_aarch64(directory, *requirements):
    """Let pip put wheels for aarch64 into a directory."""
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (28, 27, 17)]
    platforms += ["--platform=manylinux2014_aarch64", "--python-version", PYTHON]
    installed(directory, *platforms, *requirements)
