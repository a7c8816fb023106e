"""Logging to standard error: one line an event, with values shortened and escaped.

Standard output is for results alone: a log line there would break a reader of JSON.
"""

import logging
import sys
import time
from collections.abc import MutableMapping
from typing import Any, Literal

from typing_extensions import override

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


FIRST_STEP_SECONDS, LAST_STEP_SECONDS = 1.0, 600.0
"""Bounds of the time without a line after a line about the same cause; each step is doubled."""

_MAX_CAUSES = 64  # with a step of their own


class BackedOff(logging.Handler):
    """Logs what a library reports: a line for each cause, then at most one for each step.

    A library reports as often as clients make it, with a traceback and what they sent. A line has
    neither: the cause is the kind of an exception and the place that raised it, or the text of a
    message without its parameters.
    """

    def __init__(self) -> None:
        super().__init__()
        self._steps: dict[tuple[str, ...], tuple[float, float, int]] = {}

    @override
    def emit(self, record: logging.LogRecord) -> None:
        """Log a record unless its cause was logged a moment ago."""
        error = record.exc_info[1] if record.exc_info else None
        reason = str(record.msg).partition("\n")[0] if error is None else type(error).__name__
        trace = None if error is None else error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        at = "" if trace is None else f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}"
        cause = (record.name, reason, at)
        if cause not in self._steps and len(self._steps) >= _MAX_CAUSES:
            cause = ("others", "", "")
        now = time.monotonic()
        due, step, left_out = self._steps.get(cause, (now, FIRST_STEP_SECONDS, 0))
        if now < due:
            self._steps[cause] = due, step, left_out + 1
            return
        if now > due + LAST_STEP_SECONDS:
            step = FIRST_STEP_SECONDS
        self._steps[cause] = now + step, min(2 * step, LAST_STEP_SECONDS), 0
        found = {"source": record.name, "reason": reason, "at": at or None}
        Logger("online_svm").error("the server reports", **found, left_out=left_out or None)


def one_line_a_cause(*names: str) -> None:
    """Let errors of these standard loggers be logged by one `BackedOff`, and nothing else."""
    handler = BackedOff()
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.ERROR)


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
