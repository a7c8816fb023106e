"""The way to a cluster of Ray that runs."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from typing import Any

from workers.errors import BadConfiguration
from workers.python_process import importing

NAMESPACE = "online-svm"
"""Of what is named in Ray."""

CONNECT_SECONDS = 5.0
"""Seconds for the head of the cluster to take a connection."""

_HOST_AND_PORT = re.compile(r"([^/@\s]+):([0-9]{1,5})")


def ray_module() -> Any:
    """Return Ray.

    Raises BadConfiguration if it is not installed.
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

    Raises BadConfiguration if Ray is not installed, of another version than the cluster, or does
    not answer there.

    Parameters
    ----------
    address : str
        `host:port` of its head, or `auto`: the cluster that this machine is part of.
    """
    _check_address(address)
    ray = ray_module()
    try:
        # Processes of Ray would import from the present directory first, on every machine, for as
        # long as the fleet lives. The system's own directory holds no modules.
        with chdir(os.sep):
            ray.init(
                address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False
            )
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = str(error).strip().partition("\n")[0]
        raise BadConfiguration(f"Ray cluster {address}: {first}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Refuse an address at which nothing listens: Ray itself would try for minutes."""
    if address == "auto":
        return
    found = _HOST_AND_PORT.fullmatch(address)
    if found is None:
        raise BadConfiguration(
            f"Ray cluster {address[:80]!r}: give host:port of its head, or auto on one of its "
            "machines"
        )
    try:
        socket.create_connection((found[1].strip("[]"), int(found[2])), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise BadConfiguration(
            f"Ray cluster {address}: nothing answers there ({error}); `ray start --head` prints "
            "the address of the cluster that it begins"
        ) from None
