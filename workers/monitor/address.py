"""Where the endpoint listens: this machine alone, unless it is told otherwise."""

import errno
import re
import socket
from typing import NamedTuple

from workers.errors import BadConfiguration

LOOPBACK = "127.0.0.1"


class Address(NamedTuple):
    """A host and a port; port 0 takes a free one.

    Examples
    --------
    >>> str(Address.parse("9464")), str(Address.parse("[::1]:9464"))
    ('127.0.0.1:9464', '[::1]:9464')
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address that a text such as `9464`, `0.0.0.0:9464` or `[::]:9464` names.

        Raises
        ------
        BadConfiguration
            If it is none.
        """
        found = re.fullmatch(r"(?:(\[[0-9A-Fa-f:.]+\]|[^\[\]:/\s]*):)?([0-9]{1,5})", text)
        if found is None or int(found[2]) > 65_535:
            raise BadConfiguration(
                f"setting metrics: {text[:80]!r} is no address: write a port, or host:port "
                "(0.0.0.0:9464 listens on every network of this machine)"
            )
        return cls((found[1] or LOOPBACK).strip("[]"), int(found[2]))

    def check(self) -> None:
        """Raise where nothing can listen here; a port that is in use passes.

        Raises
        ------
        BadConfiguration
            If this machine has no such address, or the port is not for this user.
        """
        with socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET) as tried:
            try:
                tried.bind((self.host, self.port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise self.unusable(error) from None

    def unusable(self, error: OSError) -> BadConfiguration:
        """Return the error for an address at which nothing can listen."""
        return BadConfiguration(
            f"setting metrics: nothing can listen on {self}: {error.strerror or error}"
        )

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
