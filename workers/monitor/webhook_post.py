"""Signed HTTP requests that post the steps of incidents and notices."""

import hashlib
import hmac
import http.client
import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from online_svm.version import __version__
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration
from workers.feed.position import parse_id
from workers.monitor.delivery_queue import NoticeStep
from workers.reading.incidents import IncidentEvent
from workers.reading.verdict import Verdict

TIMEOUT_SECONDS = 10.0  # time to connect, and to wait for each part of a reply

SIGNATURE_HEADER = "X-Online-SVM-Signature"
"""Header with `sha256=` and the HMAC-SHA256 of the body in hexadecimal; only with a secret."""


class Delivery(NamedTuple):
    """A post about a step of an incident, or of a notice."""

    key: str  # the same in every attempt, so that a receiver recognises a repeat
    event: str  # such as "incident.began"
    body: bytes


class PostFailed(Exception):
    """The receiver did not accept the alarm."""


class ReceiverGone(PostFailed):
    """The receiver is gone for good: nothing more may be posted to it."""


def delivery(
    feed: str, event: IncidentEvent, verdict: Verdict, alarm: Mapping[str, Any] | None = None
) -> Delivery:
    """Return the post of a step of an incident, with the present verdict on the answers.

    `alarm` began or worsened the incident; it has the fields of `AlarmMessage`.
    """
    incident, step = event.incident, event.step
    fields: dict[str, Any] = {
        "incident": {
            "since": incident.since,
            "until": incident.until,
            "alarms": len(incident.parts),
            "kinds": sorted(incident.kinds),
        }
    }
    if alarm is not None:
        fields["alarm"] = alarm
    place = feed, event.entry, step
    return _delivery(place, f"incident.{step}", step, verdict, fields)


def notice_delivery(feed: str, change: NoticeStep, verdict: Verdict) -> Delivery:
    """Return the post of a notice that began or ended, with the verdict on it or after it."""
    notice, step = change.notice, change.step
    place = feed, change.entry, f"notice_{change.number}_{step}"
    fields = {"notice": {"code": notice.code, "words": notice.words, **asdict(notice)}}
    return _delivery(place, f"notice.{step}", f"notice_{step}", verdict, fields)


def _delivery(
    place: tuple[str, bytes, str],
    event: str,
    what: str,
    verdict: Verdict,
    fields: Mapping[str, Any],
) -> Delivery:
    """Return a post; `place`: feed, entry of the report, and what of it makes the key its own."""
    feed, entry, name = place[0], place[1].decode(), place[2]
    key = f"{feed}/{entry}/{name}"
    message = {
        "v": 1,
        "key": key,
        "feed": feed,
        "entry": entry,
        "what": what,
        "verdict": asdict(verdict),
        **fields,
    }
    return Delivery(key, event, _body(message))


def _body(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _event_headers(sent: Delivery) -> dict[str, str]:
    """Return the headers of a CloudEvent in binary content mode.

    The characters of a key need no escape in a header.
    """
    feed, entry, _ = sent.key.split("/")
    headers = {
        "ce-specversion": "1.0",
        "ce-id": sent.key,
        "ce-source": f"/feeds/{feed}",
        "ce-type": f"online-svm.{sent.event}",
    }
    time = _time(parse_id(entry.encode())[0])
    return headers if time is None else headers | {"ce-time": time}


def _time(milliseconds: int) -> str | None:
    """Return a time since 1970 as RFC 3339; None after the year 9999, where that format ends."""
    try:
        found = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return f"{found:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


class Receiver:
    """The URL to which alarms are posted; redirects are not followed, and no proxy is used.

    The URL begins with http:// or https:// (else BadConfiguration). It may hold a token, so
    messages show only its host. `secret` is the key of the signature; None means no signature.
    """

    def __init__(
        self, url: str, secret: bytes | None = None, seconds: float = TIMEOUT_SECONDS
    ) -> None:
        self._parts, self._secret, self._seconds = _parts(url), secret, seconds
        self.host = str(self._parts.hostname)
        self.target = url, secret  # identifies the receiver; never shown

    def post(self, sent: Delivery) -> None:
        """Post an alarm; raise ReceiverGone for status 410, PostFailed for others but 2xx."""
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
            **_event_headers(sent),
        }
        if self._secret is not None:
            headers[SIGNATURE_HEADER] = (
                "sha256=" + hmac.new(self._secret, sent.body, hashlib.sha256).hexdigest()
            )
        return headers


def receiver_of(settings: WorkerSettings) -> Receiver | None:
    """Return the receiver in the settings; None without a URL.

    BadConfiguration: the URL or its key cannot be used, or a key is given without a URL.
    """
    key = settings.alarm_key
    if settings.alarm_url is not None:
        return Receiver(settings.alarm_url.get_secret_value(), key)
    if key is not None:
        raise BadConfiguration("setting alarm_secret_file: give alarm_url as well")
    return None


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is not a port
        (parts.hostname or "").encode("idna")  # raises if it is no host name, as a request would
    except ValueError:
        raise _unusable() from None
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise _unusable()
    if parts.username is not None or parts.fragment:
        raise _unusable()
    return parts


def _unusable() -> BadConfiguration:
    # The URL is not quoted: it may hold a token.
    return BadConfiguration(
        "setting alarm_url: write http://host/path or https://host/path, without a user, a "
        "fragment or a space"
    )
