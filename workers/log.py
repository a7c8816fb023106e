"""Loggers that load structlog when something is logged: without it a command starts faster."""

from typing import Any


class Logger:
    """The structlog logger of a name, made when something is logged.

    Examples
    --------
    >>> callable(Logger("online_svm.redis").info)
    True
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, level: str) -> Any:
        import structlog

        return getattr(structlog.get_logger(self._name), level)
