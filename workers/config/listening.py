"""Addresses of what people and programs look at: loopback alone, unless a token is asked for."""

import os
import socket
from ipaddress import ip_address

from workers.errors import BadConfiguration

LOOPBACK = "127.0.0.1"


def is_loopback(address: str) -> bool:
    """Return whether only this machine reaches an IP address.

    Raises
    ------
    BadConfiguration
        If it is none.
    """
    try:
        return ip_address(address).is_loopback
    except ValueError:
        raise BadConfiguration(f"--address {address!r}: expected an IP address") from None


def check_address(address: str, has_token: bool) -> None:
    """Raise if an address may not be listened on.

    Raises
    ------
    BadConfiguration
        If it is no IP address, or not loopback and no token is asked for.

    Examples
    --------
    >>> check_address("127.0.0.1", False)
    >>> check_address("0.0.0.0", False)
    Traceback (most recent call last):
    workers.errors.BadConfiguration: --address 0.0.0.0: others can reach it, so ...
    """
    if not is_loopback(address) and not has_token:
        raise BadConfiguration(
            f"--address {address}: others can reach it, so it needs a token that they must know; "
            "write one of at least 16 characters into a file and name it with --token-file"
        )


def listening(address: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises
    ------
    BadConfiguration
        If the port cannot be had.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        made = socket.create_server((address, port), family=family, backlog=1024)
    except OSError as error:
        raise BadConfiguration(
            f"nothing can listen on {address} port {port}: {os.strerror(error.errno or 0)}; "
            "choose another --port, or 0 for any free one"
        ) from None
    # Connections inherit it. asyncio sets it only where a socket names its protocol, which this one
    # does not: the body of a response would wait 40 ms for the acknowledgement of its headers.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setblocking(False)
    return made
