"""URLs of Redis: check them, and show them without secrets."""

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from workers.config.redis_servers import KINDS, SENTINEL, SENTINEL_OPTIONS, kind_of, servers_of
from workers.errors import BadConfiguration

_SCHEMES = (
    "redis",
    "rediss",
    "unix",
    *(f"{one}+{kind}" for one in ("redis", "rediss") for kind in KINDS),
)
_LARGEST_DB = 2**31 - 1

# Older versions of redis-py verify the host name only on request.
_VERIFIED: dict[str, Any] = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
_ON = {"ssl_cert_reqs": ("required",), "ssl_check_hostname": ("true", "yes", "1")}

_TLS_OPTIONS = (
    *("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_password"),
    *("ssl_ciphers", *_ON),
)
# `workers.broker.client` sets the other options of redis-py: they would change how replies are
# read, or how long the client waits for them.
_OPTIONS = ("db", "username", "password", "client_name")


def redacted(url: str) -> str:
    """Return the URL without user, password and query.

    Examples
    --------
    >>> redacted("redis://worker:secret@db.example:6379/0?password=x")
    'redis://db.example:6379/0'
    >>> redacted("unix:///run/redis.sock")
    'unix:///run/redis.sock'
    >>> redacted("redis://worker:sec/ret@db.example")
    'redis://...'
    """
    scheme, _, rest = url.partition("://")
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{scheme[:10]}://..." if rest else "..."
    # An @ after the host: a password contains an unescaped / or similar.
    if not parts.scheme or "@" in f"{parts.path}{parts.query}{parts.fragment}":
        return f"{scheme[:10]}://..." if rest else "..."
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def check_url(url: str) -> dict[str, Any]:
    """Check a URL; return the options of redis-py that verify the server.

    Raises
    ------
    BadConfiguration
        If the URL cannot be used: another scheme, a path that is no database, an option that is
        not known or not of this scheme, or one that would turn the verification of the server off.

    Examples
    --------
    >>> check_url("redis://h:6379/0")
    {}
    >>> check_url("rediss://h/0?ssl_cert_reqs=none")
    Traceback (most recent call last):
    workers.errors.BadConfiguration: redis URL 'rediss://h/0': ssl_cert_reqs=none would take any \
server for this one; name its CA with redis_ca_file
    """
    try:
        parts = urlsplit(url)
        if not kind_of(url):
            _ = parts.port  # raises if it is not a port
        options = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        raise unusable(url) from None
    # An @ after the host belongs to an unescaped password, which must not be shown.
    is_split = "@" in f"{parts.path}{parts.query}{parts.fragment}"
    if parts.scheme not in _SCHEMES or is_split or parts.fragment or not url.isprintable():
        raise unusable(url)
    if kind_of(url):
        _check_servers(url)
    else:
        _check_path(url, parts.scheme, parts.path)
    names = [name for name, _ in options]
    for name, value in options:
        if names.count(name) > 1:
            raise _refused(url, f"{name[:40]!r} is given twice")
        _check_option(url, parts.scheme, name, value)
    return _VERIFIED if _has_tls(parts.scheme) else {}


def _has_tls(scheme: str) -> bool:
    return scheme.partition("+")[0] == "rediss"


def _check_servers(url: str) -> None:
    try:
        servers_of(url)
    except ValueError as error:
        if str(error):
            raise _refused(url, str(error)) from None
        raise unusable(url) from None


def _check_path(url: str, scheme: str, path: str) -> None:
    if scheme == "unix":
        if not path.strip("/"):
            raise _refused(url, "write unix:///path/of/the/socket")
    elif path not in ("", "/") and not _is_database(path[1:]):
        raise _refused(url, f"{path[:40]!r} is no database: write /0, or another number")


def _check_option(url: str, scheme: str, name: str, value: str) -> None:
    """Raise BadConfiguration for an option that cannot be used with this value."""
    known = _known_options(scheme)
    if name not in known:
        hint = "; TLS needs rediss://" if name in _TLS_OPTIONS else ""
        raise _refused(url, f"unknown option {name[:40]!r}; known: {', '.join(known)}{hint}")
    if name == "db" and not _is_database(value):
        raise _refused(url, f"db={value[:40]!r} is no database: write db=0, or another number")
    if name in _ON and value.lower() not in _ON[name]:
        raise _refused(
            url,
            f"{name}={value[:40]} would take any server for this one; name its CA with "
            "redis_ca_file",
        )


def _known_options(scheme: str) -> tuple[str, ...]:
    _, _, kind = scheme.partition("+")
    own = [name for name in _OPTIONS if name != "db" or not kind]
    of_sentinels = SENTINEL_OPTIONS if kind == SENTINEL else ()
    return (*own, *of_sentinels, *(_TLS_OPTIONS if _has_tls(scheme) else ()))


def _is_database(text: str) -> bool:
    return re.fullmatch("[0-9]{1,10}", text) is not None and int(text) <= _LARGEST_DB


def _refused(url: str, why: str) -> BadConfiguration:
    return BadConfiguration(f"redis URL {redacted(url)!r}: {why}")


def unusable(url: str) -> BadConfiguration:
    """Return the error for a URL that cannot be described without showing a secret."""
    return BadConfiguration(
        f"redis URL {redacted(url)!r} cannot be used: write redis://user:password@host:port/0, "
        "rediss://..., unix://user:password@/path, redis+cluster://host:port,host:port or "
        "redis+sentinel://host:port,host:port/service/0, and in a password %40 for @, %2F for /, "
        "%3A for :, %23 for #, %3F for ?, %25 for %"
    )
