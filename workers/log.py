"""Logging to standard error: one line an event, with values shortened and escaped.

Standard output is for results alone: a log line there would break a reader of JSON.
"""

import sys
from collections.abc import MutableMapping
from typing import Any, Literal

from workers.text import printable

MAX_VALUE_CHARACTERS = 500  # characters of a value in a log line, at most

Format = Literal["text", "json"]


class Logger:
    """A structlog logger that imports structlog when it first logs: commands start faster.

    A command that has not called `configure` logs as text.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, level: str) -> Any:
        import structlog

        if not structlog.is_configured():
            configure()
        return getattr(structlog.get_logger(self._name), level)


def configure(form: Format = "text") -> None:
    """Configure structlog: each event is a line of name=value pairs, or a JSON object."""
    import structlog

    as_text = structlog.processors.LogfmtRenderer(
        key_order=("timestamp", "level", "event"), drop_missing=True
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            bounded,
            structlog.processors.JSONRenderer() if form == "json" else as_text,
        ],
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def log_if_json(error: str) -> bool:
    """Log an error if this process logs JSON objects; return whether it does."""
    import structlog

    is_json = isinstance(
        structlog.get_config()["processors"][-1], structlog.processors.JSONRenderer
    )
    if is_json:
        structlog.get_logger("online_svm").error(error)
    return is_json


def bounded(_logger: object, _method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    r"""Shorten and escape every value, so that quoted input cannot forge a log line.

    Examples
    --------
    >>> bounded(None, "info", {"event": "a\nb", "size": 3})
    {'event': 'a\\nb', 'size': 3}
    """
    return {name: _safe(value) for name, value in event.items()}


def _safe(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return printable(text[:MAX_VALUE_CHARACTERS])
