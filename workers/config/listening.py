"""Addresses of what people and programs look at: loopback alone, unless a token is asked for."""

import os
import socket
from ipaddress import ip_address

from workers.errors import BadConfiguration

LOOPBACK = "127.0.0.1"


def is_loopback(address: str) -> bool:
    """Return whether only this machine reaches an IP; raise BadConfiguration if it is none."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        raise BadConfiguration(f"--address {address!r}: expected an IP address") from None


def check_address(address: str, has_token: bool) -> None:
    """Raise BadConfiguration unless the address is an IP of loopback, or a token is asked for."""
    if not is_loopback(address) and not has_token:
        raise BadConfiguration(
            f"--address {address}: others can reach it, so it needs a token that they must know; "
            "write one of at least 16 characters into a file and name it with --token-file"
        )


def listening(address: str, port: int) -> socket.socket:
    """Return a socket that listens; raise BadConfiguration if the port cannot be had."""
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
