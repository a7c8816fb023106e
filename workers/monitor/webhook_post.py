"""What happens to an incident, as a signed HTTP request."""

import hashlib
import hmac
import http.client
import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from online_svm import __version__
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration
from workers.feed.position import parse_id
from workers.reading.incidents import Chapter
from workers.reading.verdict import Verdict

SECONDS = 10.0
"""Seconds to connect, and to wait for each part of a reply."""

SIGNATURE = "X-Online-SVM-Signature"
"""Header with `sha256=` and the HMAC-SHA256 of the body, in hexadecimal, if there is a secret."""


class Delivery(NamedTuple):
    """What is sent.

    Attributes
    ----------
    key : str
        Names what happened: the same in every attempt, so that a receiver knows a repeat.
    body : bytes
    """

    key: str
    body: bytes


class PostFailed(Exception):
    """The receiver did not take the alarm."""


class ReceiverGone(PostFailed):
    """The receiver is there no more: nothing further is to be posted to it."""


def delivery(
    feed: str, chapter: Chapter, verdict: Verdict, alarm: Mapping[str, Any] | None = None
) -> Delivery:
    """Return the request for what happened to an incident.

    Parameters
    ----------
    feed : str
    chapter : Chapter
    verdict : Verdict
        What is to be said of the answers now.
    alarm : mapping, optional
        The one that began or worsened it, as `AlarmMessage`.

    Examples
    --------
    >>> from online_svm.stream.alarm import Alarm
    >>> from workers.reading.incidents import Chapter, Incident
    >>> from workers.reading.verdict import Verdict
    >>> incident = Incident((Alarm(50, "exchangeability", "overall", None, "ranks", 5.0, 4.6, 10),))
    >>> sent = delivery("fraud", Chapter("began", b"7-0", incident), Verdict("bad", "No trust"))
    >>> sent.key, json.loads(sent.body)["verdict"]["sentence"]
    ('fraud/7-0/began', 'No trust')
    """
    incident, entry = chapter.incident, chapter.entry.decode()
    key = f"{feed}/{entry}/{chapter.what}"
    message = {
        "v": 1,
        "key": key,
        "feed": feed,
        "entry": entry,
        "what": chapter.what,
        "verdict": asdict(verdict),
        "incident": {
            "since": incident.since,
            "until": incident.until,
            "alarms": len(incident.parts),
            "kinds": sorted(incident.kinds),
        },
    }
    if alarm is not None:
        message["alarm"] = alarm
    return Delivery(key, json.dumps(message, separators=(",", ":")).encode())


def event_headers(key: str) -> dict[str, str]:
    """Return the headers that make a request a CloudEvent, in binary content mode.

    Parameters
    ----------
    key : str
        Of the delivery. Its characters need no escape in a header.

    Examples
    --------
    >>> event_headers("fraud/1700000000123-0/began")["ce-time"]
    '2023-11-14T22:13:20.123Z'
    """
    feed, entry, what = key.split("/")
    headers = {
        "ce-specversion": "1.0",
        "ce-id": key,
        "ce-source": f"/feeds/{feed}",
        "ce-type": f"online-svm.incident.{what}",
    }
    time = _time(parse_id(entry.encode())[0])
    return headers if time is None else headers | {"ce-time": time}


def _time(milliseconds: int) -> str | None:
    """Return a time of 1970 or later by RFC 3339; None after the year 9999, which it cannot say."""
    try:
        found = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return f"{found:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


def signature(secret: bytes, body: bytes) -> str:
    """Return the value of the header `SIGNATURE`.

    Examples
    --------
    >>> signature(b"key", b"The quick brown fox jumps over the lazy dog")[:23]
    'sha256=f7bc83f430538424'
    """
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


class Receiver:
    """Where alarms are posted. It follows no redirection and reads no proxy from the environment.

    Parameters
    ----------
    url : str
        http:// or https://; it may hold a token, so no message shows more than its host.
    secret : bytes or None
        Key of the signature; None signs nothing.
    seconds : float
        Of one step of a request.

    Attributes
    ----------
    host : str
    target : (str, bytes or None)
        The URL and the key, to tell receivers apart; no message shows it.

    Raises
    ------
    BadConfiguration
        If the URL cannot be used.
    """

    def __init__(self, url: str, secret: bytes | None = None, seconds: float = SECONDS) -> None:
        self._parts, self._secret, self._seconds = _parts(url), secret, seconds
        self.host = str(self._parts.hostname)
        self.target = url, secret

    def post(self, sent: Delivery) -> None:
        """Post one alarm.

        Raises
        ------
        ReceiverGone
            If the receiver answers with 410.
        PostFailed
            Unless it answers with 200 to 299.
        """
        parts = self._parts
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        connection = kind(self.host, parts.port, timeout=self._seconds)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request("POST", path, sent.body, self._headers(sent))
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise PostFailed(type(error).__name__) from None
        finally:
            connection.close()
        if status == http.client.GONE:
            raise ReceiverGone(f"status {status}")
        if not 200 <= status < 300:
            raise PostFailed(f"status {status}")

    def _headers(self, sent: Delivery) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"online-svm/{__version__}",
            "Idempotency-Key": sent.key,
            **event_headers(sent.key),
        }
        if self._secret is not None:
            headers[SIGNATURE] = signature(self._secret, sent.body)
        return headers


def receiver_of(settings: WorkerSettings) -> Receiver | None:
    """Return where the settings post alarms; None if nowhere.

    Raises
    ------
    BadConfiguration
        If the URL or its key cannot be used, or a key is given and no URL.
    """
    key = settings.alarm_key
    if settings.alarm_url is not None:
        return Receiver(settings.alarm_url.get_secret_value(), key)
    if key is not None:
        raise BadConfiguration("setting alarm_secret: give alarm_url as well")
    return None


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is none
        (parts.hostname or "").encode("idna")  # as a request does; raises if it is no name
    except ValueError:
        raise _unusable() from None
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise _unusable()
    if parts.username is not None or parts.fragment:
        raise _unusable()
    return parts


def _unusable() -> BadConfiguration:
    # The URL may hold a token: it is not quoted.
    return BadConfiguration(
        "setting alarm_url: write http://host/path or https://host/path, without a user, a "
        "fragment or a space"
    )
