"""Check a URL of Redis, and find the servers that it names.

`redis+cluster://h1:7000,h2:7001` names some nodes of a cluster; one that answers is enough.
`redis+sentinel://h1,h2/service/0` names sentinels, the service they watch, and its database.
`rediss+` means TLS for every connection. User and password in the URL are for the data servers; the
options `sentinel_username` and `sentinel_password` are for the sentinels.
"""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from workers.config.redis_url import (
    CLUSTER,
    SENTINEL,
    has_tls,
    kind_of,
    redacted,
    splits_password,
)
from workers.errors import BadConfiguration

SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")

_PORTS = {CLUSTER: 6379, SENTINEL: 26379}
_HOST = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.%]+)\]|(?P<name>[^\[\]:,\s]+))(?::(?P<port>[0-9]{1,5}))?"
)
_SERVICE = re.compile(r"[\w.-]{1,128}")

_SCHEMES = (
    *("redis", "rediss", "unix", "redis+cluster", "rediss+cluster"),
    *("redis+sentinel", "rediss+sentinel"),
)
_LARGEST_DB = 2**31 - 1

# Older versions of redis-py verify the host name only on request.
_VERIFIED: dict[str, Any] = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
_ALLOWED_VALUES = {"ssl_cert_reqs": ("required",), "ssl_check_hostname": ("true", "yes", "1")}

_TLS_OPTIONS = (
    *("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_password"),
    *("ssl_ciphers", *_ALLOWED_VALUES),
)
# Only `workers.broker.client` sets the other options of redis-py, which change how replies are
# read or how long the client waits for them.
_OPTIONS = ("db", "username", "password", "client_name")

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Servers:
    """The parts of a URL that names several servers."""

    kind: str  # CLUSTER or SENTINEL
    scheme: str  # of a connection to one server: redis or rediss
    hosts: tuple[Address, ...]  # nodes or sentinels
    user: str = field(repr=False)  # user and password, encoded as in the URL; may be empty
    service: str  # watched by the sentinels; empty for a cluster
    database: int
    options: tuple[tuple[str, str], ...] = field(repr=False)  # of a connection to a data server
    sentinel: tuple[tuple[str, str], ...] = field(repr=False)  # of a connection to a sentinel

    def url_of(self, address: Address) -> str:
        """Return the URL of a data server, with the credentials of this URL."""
        return self._url(self.user, address, self.options)

    def url_of_sentinel(self, address: Address) -> str:
        """Return the URL of a sentinel, with the credentials for sentinels."""
        own = [(name.removeprefix("sentinel_"), value) for name, value in self.sentinel]
        shared = [(name, value) for name, value in self.options if name.startswith("ssl_")]
        return self._url("", address, [*shared, *own], database=False)

    def _url(self, user: str, address: Address, options: object, database: bool = True) -> str:
        host, port = address
        at = f"{user}@" if user else ""
        name = f"[{host}]" if ":" in host else host
        path = f"/{self.database}" if database else ""
        query = urlencode(options)  # type: ignore[arg-type]  # pairs of text
        return f"{self.scheme}://{at}{name}:{port}{path}" + (f"?{query}" if query else "")


def address_in(url: str) -> Address:
    """Return host and port in the URL of one server that `Servers.url_of` made."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def servers_of(url: str) -> Servers:
    """Return the parts of a URL that names several servers; `check_url` must have accepted it.

    Raises ValueError for an invalid host, port, service or database; its text is empty if it could
    show a secret.
    """
    parts = urlsplit(url)
    scheme, _, kind = parts.scheme.partition("+")
    user, _, hosts = parts.netloc.rpartition("@")
    service, database = _service_and_database(kind, parts.path)
    options = parse_qsl(parts.query, keep_blank_values=True)
    return Servers(
        kind,
        scheme,
        tuple(_address(host, _PORTS[kind]) for host in hosts.split(",")),
        user,
        service,
        database,
        tuple(option for option in options if option[0] not in SENTINEL_OPTIONS),
        tuple(option for option in options if option[0] in SENTINEL_OPTIONS),
    )


def _address(text: str, port: int) -> Address:
    found = _HOST.fullmatch(text)
    if found is None or not 0 < int(found["port"] or port) < 1 << 16:
        raise ValueError
    return found["six"] or found["name"], int(found["port"] or port)


def _service_and_database(kind: str, path: str) -> tuple[str, int]:
    if kind == CLUSTER:
        if path not in ("", "/", "/0"):
            raise ValueError(f"{path[:40]!r}: a cluster has database 0 alone; leave it out")
        return "", 0
    service, _, database = unquote(path).strip("/").partition("/")
    if not _SERVICE.fullmatch(service):
        raise ValueError("name the service that the sentinels watch: .../SERVICE or .../SERVICE/0")
    if not re.fullmatch("[0-9]{0,10}", database) or int(database or 0) >= 1 << 31:
        raise ValueError(f"{database[:40]!r} is no database: write /{service}/0, or another number")
    return service, int(database or 0)


def check_url(url: str) -> dict[str, Any]:
    """Check a URL; return the options of redis-py that verify the server.

    Raises BadConfiguration for an unknown scheme, a path that is no database, an option that is
    unknown or not of this scheme, or an option that would disable verification of the server.
    """
    try:
        parts = urlsplit(url)
        if not kind_of(url):
            _ = parts.port  # raises if it is not a port
        options = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        raise unusable(url) from None
    is_plain = url.isprintable() and not parts.fragment and not splits_password(parts)
    if parts.scheme not in _SCHEMES or not is_plain:
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
    return _VERIFIED if has_tls(parts.scheme) else {}


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
    if name in _ALLOWED_VALUES and value.lower() not in _ALLOWED_VALUES[name]:
        raise _refused(
            url,
            f"{name}={value[:40]} would take any server for this one; name its CA with "
            "redis_ca_file",
        )


def _known_options(scheme: str) -> tuple[str, ...]:
    _, _, kind = scheme.partition("+")
    own = [name for name in _OPTIONS if name != "db" or not kind]
    of_sentinels = SENTINEL_OPTIONS if kind == SENTINEL else ()
    return (*own, *of_sentinels, *(_TLS_OPTIONS if has_tls(scheme) else ()))


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
