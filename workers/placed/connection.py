"""The way to a cluster of Ray that runs."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workers.errors import BadConfiguration
from workers.fast_imports import importing

NAMESPACE = "online-svm"
"""Of what is named in Ray."""

REACHED = 5.0
"""Seconds for the head of the cluster to take a connection."""

_HOST_AND_PORT = re.compile(r"([^/@\s]+):([0-9]{1,5})")


def ray_module() -> Any:
    """Return Ray.

    Raises
    ------
    BadConfiguration
        If it is not installed.
    """
    try:
        with importing():
            import ray
    except ModuleNotFoundError:
        raise BadConfiguration(
            "this needs Ray, which is not installed: pip install 'online-svm[ray]'"
        ) from None
    return ray


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield Ray, connected to a cluster that runs.

    Parameters
    ----------
    address : str
        `host:port` of its head, or `auto`: the cluster that this machine is part of.

    Raises
    ------
    BadConfiguration
        If Ray is not installed, of another version than the cluster, or does not answer there.
    """
    _check_address(address)
    ray = ray_module()
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = str(error).strip().partition("\n")[0]
        raise BadConfiguration(f"Ray cluster {address}: {first}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Refuse an address at which nothing listens: Ray itself would try for minutes.

    Raises
    ------
    BadConfiguration
    """
    if address == "auto":
        return
    found = _HOST_AND_PORT.fullmatch(address)
    if found is None:
        raise BadConfiguration(
            f"Ray cluster {address[:80]!r}: give host:port of its head, or auto on one of its "
            "machines"
        )
    try:
        socket.create_connection((found[1].strip("[]"), int(found[2])), REACHED).close()
    except (OSError, OverflowError) as error:
        raise BadConfiguration(
            f"Ray cluster {address}: nothing answers there ({error}); `ray start --head` prints "
            "the address of the cluster that it begins"
        ) from None
