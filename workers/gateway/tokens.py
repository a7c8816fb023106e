"""Bearer tokens and their rights, from a file that is read again when it changes.

The file is TOML, with a table `[[token]]` for each token:

    [[token]]
    token = "at least 16 characters, hard to guess"
    feeds = ["fraud", "sensors-*"]
    rights = ["ask", "label", "read"]
"""

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from workers.config.files import read_toml
from workers.errors import BadConfiguration
from workers.feed.selection import Selection
from workers.gateway.refused import Refused
from workers.log import Logger

RIGHTS = ("ask", "label", "read")
"""Add examples and read their answers; add labels; read status, alarms and answers."""

MIN_TOKEN_CHARACTERS = 16
"""Smallest number of characters of a token."""

_SCHEME = "bearer"

log = Logger("online_svm.gateway")


class Grant(NamedTuple):
    """The rights of one token."""

    digest: bytes  # SHA-256 of the token, which itself is not kept
    feeds: Selection
    rights: frozenset[str]


class Tokens:
    """The tokens of a file; without a file, for use on loopback, everybody has all rights.

    Raises BadConfiguration if the file cannot be read, or is invalid.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._grants: list[Grant] = []
        self._version: object = None
        if path is not None:
            self._version = _version(path)
            self._grants = grants(path)

    def check(self, header: str | None, feed: str, rights: Sequence[str]) -> None:
        """Raise Refused unless an `Authorization` header gives one of the rights to a feed.

        The status is 401 without a known token; 403 if the token does not have the right.
        """
        if self._path is None:
            return
        self._read_if_changed()
        scheme, _, token = (header or "").partition(" ")
        given = sha256(token.strip().encode(errors="replace")).digest()
        # All are compared, so that the time reveals nothing.
        known = [one for one in self._grants if hmac.compare_digest(one.digest, given)]
        if scheme.lower() != _SCHEME or not known:
            raise Refused("token_unknown", headers={"WWW-Authenticate": "Bearer"})
        if not any(one.feeds.selects(feed) and not one.rights.isdisjoint(rights) for one in known):
            raise Refused("right_missing", right=" or ".join(rights), feed=feed)

    def _read_if_changed(self) -> None:
        """Read the file again if it changed; if that fails, keep the previous tokens."""
        assert self._path is not None
        version = _version(self._path)
        if version == self._version:
            return
        self._version = version
        try:
            self._grants = grants(self._path)
            log.info("tokens are read again", tokens=len(self._grants))
        except BadConfiguration as error:
            log.error("tokens cannot be read; those of before stay", reason=str(error))


def grants(path: Path) -> list[Grant]:
    """Return the tokens of a file.

    Raises BadConfiguration with the number of an invalid token, never with its text.
    """
    try:
        found = read_toml(path, may_quote=False)  # a token must not be shown
    except BadConfiguration as error:
        raise BadConfiguration(f"--token-file {error}") from None
    tables = found.pop("token", None)
    if found or not isinstance(tables, list) or not tables:
        raise _unusable(path, "write tables [[token]] with token, feeds and rights, nothing else")
    return [_grant(path, number, one) for number, one in enumerate(tables, 1)]


def _grant(path: Path, number: int, table: Any) -> Grant:
    if not isinstance(table, Mapping) or set(table) != {"token", "feeds", "rights"}:
        raise _unusable(path, f"token {number}: write token, feeds and rights")
    token, feeds, rights = table["token"], table["feeds"], table["rights"]
    if (
        not isinstance(token, str)
        or len(token) < MIN_TOKEN_CHARACTERS
        or not token.isascii()
        or " " in token
    ):
        raise _unusable(
            path,
            f"token {number}: use at least {MIN_TOKEN_CHARACTERS} characters of ASCII, without a "
            "space",
        )
    if not _are_texts(feeds) or not _are_texts(rights) or not set(rights) <= set(RIGHTS):
        form = f"feeds are names or patterns, rights are among {', '.join(RIGHTS)}"
        raise _unusable(path, f"token {number}: {form}")
    return Grant(sha256(token.encode()).digest(), Selection(feeds), frozenset(rights))


def _are_texts(found: Any) -> bool:
    return isinstance(found, list) and bool(found) and all(isinstance(one, str) for one in found)


def _unusable(path: Path, reason: str) -> BadConfiguration:
    return BadConfiguration(f"--token-file {path}: {reason}")


def _version(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
