"""Credentials from files: those that complete the URL of Redis, and the key that signs alarms.

`redis_url.redacted` removes what is added here (password, query) from every message.
"""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from workers.config.redis_servers import SENTINEL, kind_of
from workers.config.redis_url import redacted
from workers.errors import BadConfiguration

FILES = {
    "redis_password_file": "password",
    "redis_sentinel_password_file": "sentinel_password",
    "redis_ca_file": "ssl_ca_certs",
    "redis_cert_file": "ssl_certfile",
    "redis_key_file": "ssl_keyfile",
}
"""Settings that name a file, and what each becomes in the query of the URL."""


def complete(url: str | None, files: Mapping[str, str | Path | None]) -> str | None:
    """Return the URL with the credentials of the files; None if there is neither.

    Parameters
    ----------
    url : str or None
        None stands for the embedded server, which takes no credentials.
    files : mapping
        From the settings in `FILES` to paths, or None.

    Raises
    ------
    BadConfiguration
        If a file cannot be read, a password is given twice, a certificate is named for a
        connection without TLS, or a file for no URL.

    Examples
    --------
    >>> complete("rediss://db.example/0", {"redis_ca_file": None})
    'rediss://db.example/0'
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
    if named and urlsplit(url).scheme.partition("+")[0] != "rediss":
        raise BadConfiguration(f"setting {next(iter(named))}: the URL must begin with rediss://")
    return _with_query(url, {FILES[name]: _readable(name, path) for name, path in named.items()})


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
    return _with_query(url, {FILES[setting]: _password(setting, path)})


def _password(setting: str, path: Path) -> str:
    """Return the password in a file."""
    try:
        return _one_line(setting, path).decode()
    except UnicodeDecodeError:  # its text quotes the bytes
        raise BadConfiguration(f"setting {setting}: {path}: it is not UTF-8") from None


def _one_line(setting: str, path: Path) -> bytes:
    """Return the only line of a file."""
    try:
        found = path.read_bytes().strip(b"\r\n")
    except OSError as error:
        raise BadConfiguration(f"setting {setting}: {path}: {error.strerror}") from None
    if not found or b"\n" in found:
        raise BadConfiguration(f"setting {setting}: {path}: one line is wanted")
    return found


def _with_query(url: str, more: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    query = "&".join(filter(None, (parts.query, urlencode(more))))
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, parts.fragment))


def _readable(name: str, path: Path) -> str:
    try:
        path.open("rb").close()
    except OSError as error:
        raise BadConfiguration(f"setting {name}: {path}: {error.strerror}") from None
    return str(path)


def shown_receiver(url: str) -> str:
    """Return the URL of a receiver of alarms without its path and query, which often hold a token.

    Examples
    --------
    >>> shown_receiver("https://hooks.example/services/T0/B0/secret?x=1")
    'https://hooks.example/...'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "..."
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/..."


def signing_key(given: str | None, path: Path | None) -> bytes | None:
    """Return the key that signs alarms, from the setting or from a file; None if there is none.

    Raises
    ------
    BadConfiguration
        If both are given, the file cannot be read, or it does not hold one line.
    """
    if path is None:
        return None if given is None else given.encode()
    if given is not None:
        raise BadConfiguration("give alarm_secret or alarm_secret_file, not both")
    return _one_line("alarm_secret_file", path)
