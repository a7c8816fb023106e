"""The lease: which worker runs a feed, so that others wait. Correctness needs only the fence."""

import json
import os
import platform
import secrets
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import orjson

from workers.broker.script import Script

REPLACE = Script.load("replace_lease", name="lease-replace")
RELEASE = Script.load("release_lease", name="lease-release")

LONGEST = 4096
"""Largest lease in bytes; names of hosts and workers are far shorter."""


class HeldLease(Protocol):
    """A lease that is renewed elsewhere."""

    def pop_loss(self) -> bool:
        """Return whether it was found lost since the last call, and forget it."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The value of the lease.

    Attributes
    ----------
    name : str
        Stable name of the worker.
    host : str
        Scope in which the process id is unique.
    pid : int
    started : str
        Start of the process, as the system reports it: distinguishes later processes with this id.
    token : str
        Random: distinguishes two leases of one process.
    """

    name: str
    host: str
    pid: int
    started: str
    token: str

    @classmethod
    def here(cls, name: str) -> Self:
        """Return this process as a holder, with a new token."""
        pid = os.getpid()
        return cls(name, host_identity(), pid, process_start(pid) or "", secrets.token_hex(8))

    @classmethod
    def parse(cls, text: bytes) -> Self | None:
        """Return the holder, or None if the text is not one.

        Examples
        --------
        >>> Holder.parse(b'{"name":"w","host":"h","pid":"self","started":"","token":""}')
        """
        try:
            found: Any = orjson.loads(text) if len(text) <= LONGEST else None
        except orjson.JSONDecodeError:
            return None
        return cls(**found) if _is_holder(found) else None

    def encode(self) -> bytes:
        """Return the text stored in Redis."""
        return json.dumps(asdict(self)).encode()

    def is_dead(self) -> bool:
        """Return whether the process is certainly gone: same host, and no such process."""
        return self.host == host_identity() and process_start(self.pid) != self.started


def _is_holder(found: Any) -> bool:
    """Return whether an object has the fields of a `Holder` with the right types."""
    kinds = {name: int if name == "pid" else str for name in Holder.__slots__}
    if not isinstance(found, dict) or found.keys() != kinds.keys():
        return False
    return all(type(found[name]) is kind for name, kind in kinds.items()) and found["pid"] > 0


def is_held(held: bytes | None) -> bool:
    """Return whether the value of a lease is that of a worker that may be alive.

    Examples
    --------
    >>> is_held(None), is_held(Holder.here("me").encode())
    (False, True)
    """
    if not held:
        return False
    holder = Holder.parse(held)
    return holder is None or not holder.is_dead()


def host_identity() -> str:
    """Return the scope of process ids: this boot of this machine, and the pid namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def process_start(pid: int) -> str | None:
    """Return when a process started, or None if it does not exist.

    Examples
    --------
    >>> process_start(os.getpid()) is None
    False
    """
    try:
        # The name in parentheses may contain anything. The start time is the 20th field after it.
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if status[0] == "Z" else status[19]
    except (FileNotFoundError, ProcessLookupError):  # the second if it ends while it is read
        if Path("/proc/self/stat").exists():
            return None
    listed = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return listed.stdout.strip() or None
