"""Packages that only a comparison needs."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from workers.errors import BadConfiguration

DEV = "pip install 'online-svm[dev]' brings it"


def peer_package(bench: str, package: str, remedy: str = DEV) -> Any:
    """Import the package that a benchmark compares with.

    Raises
    ------
    BadConfiguration
        If it is not installed.
    """
    try:
        with np.errstate():  # importing venn_abers switches numpy's warnings off for everyone
            return import_module(package)
    except ImportError as error:
        raise BadConfiguration(
            f"bench {bench}: the {package.replace('_', '-')} package is not installed; {remedy}"
        ) from error


@contextmanager
def unwarned() -> Iterator[None]:
    """Silence what venn-abers warns of: it divides by zero on its way, and takes minima of NaN."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
