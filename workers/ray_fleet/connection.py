"""Connect to a running Ray cluster."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from typing import Any

from workers.errors import BadConfiguration
from workers.python_process import importing

NAMESPACE = "online-svm"  # Ray's namespace of the actors
CONNECT_SECONDS = 5.0  # seconds to connect to the head of the cluster

_HOST_AND_PORT = re.compile(r"([^/@\s]+):([0-9]{1,5})")


def ray_module() -> Any:
    """Return the module of Ray. Raises BadConfiguration if it is not installed."""
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
    """Connect Ray to a running cluster within the block; yield its module.

    `address` is `host:port` of the cluster's head, or `auto` for the cluster of this machine.
    Raises BadConfiguration if Ray is not installed, has another version than the cluster, or does
    not answer there.
    """
    _check_address(address)
    ray = ray_module()
    try:
        # Ray's processes on every machine import modules from this directory first, as long as the
        # fleet lives. The root directory has none.
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
    """Raise BadConfiguration if nothing listens at an address: Ray would try for minutes."""
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
