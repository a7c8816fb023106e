"""URLs that name several servers: those of a Redis Cluster, and of Sentinel.

`redis+cluster://h1:7000,h2:7001` names some nodes of a cluster; one that answers is enough.
`redis+sentinel://h1,h2/service/0` names sentinels, the service they watch, and a database of it.
With `rediss+` every connection is one over TLS. User and password are those of the servers;
sentinels have their own, in the options `sentinel_username` and `sentinel_password`.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

CLUSTER, SENTINEL = "cluster", "sentinel"
KINDS = (CLUSTER, SENTINEL)

SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")

_PORTS = {CLUSTER: 6379, SENTINEL: 26379}
_HOST = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.%]+)\]|(?P<name>[^\[\]:,\s]+))(?::(?P<port>[0-9]{1,5}))?"
)
_SERVICE = re.compile(r"[\w.-]{1,128}")

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Servers:
    """What a URL of several servers names.

    Attributes
    ----------
    kind : str
        `CLUSTER` or `SENTINEL`.
    scheme : str
        Of the URL of one server: "redis" or "rediss".
    hosts : tuple of (str, int)
        Nodes or sentinels.
    user : str
        User and password as the URL has them, encoded; may be empty.
    service : str
        That the sentinels watch; empty for a cluster.
    database : int
    options : tuple of (str, str)
        For a connection to one server.
    sentinel : tuple of (str, str)
        Options for a connection to a sentinel alone.
    """

    kind: str
    scheme: str
    hosts: tuple[Address, ...]
    user: str = field(repr=False)
    service: str
    database: int
    options: tuple[tuple[str, str], ...] = field(repr=False)
    sentinel: tuple[tuple[str, str], ...] = field(repr=False)

    def url_of(self, address: Address) -> str:
        """Return the URL of one server of the data, with the credentials of this URL."""
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


def kind_of(url: str) -> str:
    """Return `CLUSTER`, `SENTINEL`, or "" for a URL of one server.

    Examples
    --------
    >>> kind_of("redis+cluster://h"), kind_of("rediss+sentinel://h/s"), kind_of("redis://h")
    ('cluster', 'sentinel', '')
    """
    kind = url.partition("://")[0].partition("+")[2]
    return kind if kind in KINDS else ""


def address_in(url: str) -> Address:
    """Return host and port in the URL of one server that `Servers.url_of` made.

    Examples
    --------
    >>> address_in("redis://u:p@[::1]:7001/0")
    ('::1', 7001)
    """
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def servers_of(url: str) -> Servers:
    """Return what a URL of several servers names; it was checked by `redis_url.check_url`.

    Raises
    ------
    ValueError
        If a host, a port, the service or the database cannot be one; the text is empty where it
        could show a secret.

    Examples
    --------
    >>> found = servers_of("redis+cluster://u:p@a:7000,[::1]:7001")
    >>> found.hosts, found.url_of(found.hosts[1])
    ((('a', 7000), ('::1', 7001)), 'redis://u:p@[::1]:7001/0')
    >>> found = servers_of("redis+sentinel://s1,s2:26380/main/2?sentinel_password=x")
    >>> found.service, found.url_of(("10.0.0.1", 6379)), found.url_of_sentinel(found.hosts[0])
    ('main', 'redis://10.0.0.1:6379/2', 'redis://s1:26379?password=x')
    """
    parts = urlsplit(url)
    scheme, _, kind = parts.scheme.partition("+")
    user, _, hosts = parts.netloc.rpartition("@")
    service, database = _of_path(kind, parts.path)
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


def _of_path(kind: str, path: str) -> tuple[str, int]:
    """Return service and database."""
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
