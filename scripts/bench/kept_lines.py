"""Measured cells in a file of JSON lines, so that a run that is cut off goes on."""

import fcntl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import orjson

from workers.errors import BadConfiguration

Measured = TypeVar("Measured")
Key = tuple[Any, ...]


class KeptLines(Generic[Measured]):
    """What was measured, by a key; each line of the file is a key and what was measured.

    Parameters
    ----------
    path : Path
        Made if it is not there. A last line that was cut off is removed.
    names : sequence of str
        Names of the parts of a key, as the file spells them.
    plain, of_plain : callable
        To JSON values and back. `of_plain` raises ValueError, KeyError or TypeError for what
        `plain` did not give.

    Raises
    ------
    BadConfiguration
        If the file cannot be read, or a line is none of this benchmark.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     file = Path(directory) / "kept.jsonl"
    ...     KeptLines(file, ["stream"], str, float).add(("elec2",), 0.5)
    ...     kept = KeptLines(file, ["stream"], str, float)
    >>> kept.get(("elec2",)), kept.get(("adult",))
    (0.5, None)
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        plain: Callable[[Measured], Any],
        of_plain: Callable[[Any], Measured],
    ) -> None:
        self._path, self._names = path, tuple(names)
        self._plain, self._of_plain = plain, of_plain
        self._kept: dict[Key, Measured] = {}
        try:
            whole = _whole_lines(path)
        except OSError as error:
            raise BadConfiguration(f"--results {path}: {error.strerror}") from None
        for number, line in enumerate(whole, start=1):
            self._read(number, line)

    def _read(self, number: int, line: bytes) -> None:
        try:
            values = orjson.loads(line)
            key = tuple(values[name] for name in self._names)
            self._kept[key] = self._of_plain(values["measured"])
        except (ValueError, KeyError, TypeError):
            raise BadConfiguration(
                f"--results {self._path}, line {number}: no cell of this benchmark; choose another "
                "file, or delete the line"
            ) from None

    def get(self, key: Key) -> Measured | None:
        """Return what is kept under a key; None if there is nothing."""
        return self._kept.get(key)

    def add(self, key: Key, measured: Measured) -> None:
        """Keep one more: its line is written at once."""
        self._kept[key] = measured
        line = dict(zip(self._names, key, strict=True)) | {"measured": self._plain(measured)}
        with self._path.open("ab") as target:
            fcntl.flock(target, fcntl.LOCK_EX)  # another run may write to the same file
            target.write(orjson.dumps(line) + b"\n")


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines of the file, without a last one that was cut off."""
    with path.open("a+b") as target:
        fcntl.flock(target, fcntl.LOCK_EX)  # what is cut off now is of a run that has ended
        target.seek(0)
        data = target.read()
        size = data.rfind(b"\n") + 1
        target.truncate(size)
    return data[:size].splitlines()
