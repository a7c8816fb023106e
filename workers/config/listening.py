"""Addresses that the page and the gateway listen on: without a token only loopback."""

import contextlib
import os
import resource
import socket
from ipaddress import ip_address

from workers.errors import BadConfiguration

LOOPBACK = "127.0.0.1"

_OTHER_DESCRIPTORS = 64  # open files besides connections


def is_loopback(address: str) -> bool:
    """Return whether an IP address is loopback; BadConfiguration: the text is no IP address."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        raise BadConfiguration(f"--address {address!r}: expected an IP address") from None


def check_address(address: str, has_token: bool) -> None:
    """Raise BadConfiguration unless the IP address is loopback, or a token is required."""
    if not is_loopback(address) and not has_token:
        raise BadConfiguration(
            f"--address {address}: others can reach it, so it needs a token that they must know; "
            "write one of at least 16 characters into a file and name it with --token-file"
        )


def listening(address: str, port: int) -> socket.socket:
    """Return a listening socket; BadConfiguration: the port cannot be used."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        listener = socket.create_server((address, port), family=family, backlog=1024)
    except OSError as error:
        raise BadConfiguration(
            f"nothing can listen on {address} port {port}: {os.strerror(error.errno or 0)}; "
            "choose another --port, or 0 for any free one"
        ) from None
    # Accepted connections inherit TCP_NODELAY. asyncio would not set it, because the protocol of
    # this socket is 0; the body of a response would then wait 40 ms for a delayed acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setblocking(False)
    return listener


def allowed_connections(connections: int) -> int:
    """Raise the limit of open files for so many connections; return the possible number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_DESCRIPTORS
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):  # not permitted
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(1, min(connections, soft - _OTHER_DESCRIPTORS))
