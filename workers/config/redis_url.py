"""The URL of Redis in the settings: add credentials from files, and redact it for messages.

`workers.broker.servers` checks it and finds the servers that it names.
"""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

from workers.config.files import read_regular
from workers.errors import BadConfiguration

CLUSTER, SENTINEL = "cluster", "sentinel"

_MAX_LINE_BYTES = 1 << 16

CREDENTIAL_FILES = {
    "redis_password_file": "password",
    "redis_sentinel_password_file": "sentinel_password",
    "redis_ca_file": "ssl_ca_certs",
}
"""Settings that name a file, each with the part or option of the URL that it fills."""


def kind_of(url: str) -> str:
    """Return `CLUSTER`, `SENTINEL`, or "" for a URL of one server."""
    kind = url.partition("://")[0].partition("+")[2]
    return kind if kind in (CLUSTER, SENTINEL) else ""


def has_tls(scheme: str) -> bool:
    """Return whether connections of a scheme use TLS."""
    return scheme.partition("+")[0] == "rediss"


def redacted(url: str) -> str:
    """Return the URL without user, password and query."""
    scheme, _, rest = url.partition("://")
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{scheme[:10]}://..." if rest else "..."
    if not parts.scheme or splits_password(parts):
        return f"{scheme[:10]}://..." if rest else "..."
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def splits_password(parts: SplitResult) -> bool:
    """Return whether an @ follows the host: the password contains an unescaped / or similar."""
    return "@" in f"{parts.path}{parts.query}{parts.fragment}"


def complete(url: str | None, files: Mapping[str, str | Path | None]) -> str | None:
    """Return the URL with the credentials of files, given by setting; None without a URL and files.

    Raises BadConfiguration if a file cannot be read, a password is given twice, a certificate is
    named for a connection without TLS, or files are named without a URL.
    """
    named = {name: Path(path) for name, path in files.items() if path is not None}
    if not named:
        return url
    if url is None:
        raise BadConfiguration(f"setting {next(iter(named))}: give the URL of Redis as well")
    password_file = named.pop("redis_password_file", None)
    if password_file is not None:
        url = _with_password(url, password_file)
    sentinel_file = named.pop("redis_sentinel_password_file", None)
    if sentinel_file is not None:
        url = _with_sentinel_password(url, sentinel_file)
    if named and not has_tls(urlsplit(url).scheme):
        raise BadConfiguration(f"setting {next(iter(named))}: the URL must begin with rediss://")
    return _with_query(
        url, {CREDENTIAL_FILES[name]: _readable(name, path) for name, path in named.items()}
    )


def _with_password(url: str, path: Path) -> str:
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    if ":" in user:
        raise BadConfiguration(
            f"setting redis_password_file: the URL {redacted(url)!r} holds a password already"
        )
    netloc = f"{user}:{quote(_password('redis_password_file', path), safe='')}@{host}"
    return urlunsplit((parts.scheme, netloc, parts.path, parts.query, parts.fragment))


def _with_sentinel_password(url: str, path: Path) -> str:
    setting = "redis_sentinel_password_file"
    if kind_of(url) != SENTINEL:
        raise BadConfiguration(f"setting {setting}: the URL must begin with redis+sentinel://")
    if "sentinel_password" in dict(parse_qsl(urlsplit(url).query, keep_blank_values=True)):
        raise BadConfiguration(
            f"setting {setting}: the URL {redacted(url)!r} holds that password already"
        )
    return _with_query(url, {CREDENTIAL_FILES[setting]: _password(setting, path)})


def _password(setting: str, path: Path) -> str:
    try:
        return one_line(setting, path).decode()
    except UnicodeDecodeError:  # not chained: its text quotes the bytes
        raise BadConfiguration(
            f"setting {setting}: {path}: it is not UTF-8; write it as UTF-8 text"
        ) from None


def one_line(setting: str, path: Path) -> bytes:
    """Return the only line of the file that a setting names; BadConfiguration if there is none."""
    try:
        found = read_regular(path, _MAX_LINE_BYTES).strip(b"\r\n")
    except OSError as error:
        raise BadConfiguration(f"setting {setting}: {path}: {error.strerror}") from None
    if not found or b"\n" in found or len(found) > _MAX_LINE_BYTES:
        form = f"one line is wanted, of at most {_MAX_LINE_BYTES:,} bytes"
        raise BadConfiguration(f"setting {setting}: {path}: {form}")
    return found


def _with_query(url: str, more: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    query = "&".join(filter(None, (parts.query, urlencode(more))))
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, parts.fragment))


def _readable(name: str, path: Path) -> str:
    try:
        read_regular(path, 0)
    except OSError as error:
        raise BadConfiguration(f"setting {name}: {path}: {error.strerror}") from None
    return str(path)
