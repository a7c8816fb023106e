"""Results of finished configurations in a directory, so that a backtest can be continued.

A result is stored under a key: a digest of everything that determines it. They are in one file of
JSON lines, which is replaced atomically.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

import online_svm
from workers.errors import BadConfiguration
from workers.offline.backtest.configurations import Configuration
from workers.offline.backtest.history import Recording
from workers.offline.backtest.result import BacktestResult

RESULTS_FILE = "backtest.jsonl"

MAX_FILE_BYTES = 1 << 28  # largest file; a result takes some ten thousand bytes

_LOCK = ".backtest.lock"

_CODE = {".py", ".so", ".pyd"}  # suffixes of code files: modules, and the compiled kernels


def libraries() -> dict[str, str]:
    """Return the versions of the libraries that determine the figures."""
    return {"numpy": version("numpy")}


def key(configuration: Configuration, recording: Recording) -> str:
    """Return the key of a result: a digest of settings, history, code and libraries."""
    parts = {
        "settings": configuration.settings,
        "history": recording.digest,
        "code": code_digest(),
        "libraries": libraries(),
    }
    return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


@cache
def code_digest() -> str:
    """Return a digest of the code that answers and scores."""
    digest = sha256()
    here = Path(__file__).parent
    for package in (Path(online_svm.__file__).parent, here, here.parents[1] / "session"):
        for path in sorted(path for path in package.rglob("*") if path.suffix in _CODE):
            digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class _Line(BaseModel):
    """One line of the file; name and settings are for people."""

    model_config = ConfigDict(extra="forbid")

    key: str
    name: str
    settings: dict[str, Any]
    result: BacktestResult


class KeptResults:
    """The results in a directory, which is created; its parent must exist.

    Raises BadConfiguration if the directory cannot be written, or a line of the file is no result.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with self._reporting_errors():
            directory.mkdir(exist_ok=True)
        with self._locked():
            self._lines = self._read()

    def get(self, key: str) -> BacktestResult | None:
        """Return the result of a key; None if there is none."""
        line = self._lines.get(key)
        return None if line is None else line.result

    def add(self, key: str, configuration: Configuration, result: BacktestResult) -> None:
        """Add a result; the results that another process added meanwhile stay."""
        with self._locked():
            settings = configuration.settings
            line = _Line(key=key, name=configuration.name, settings=settings, result=result)
            self._lines = self._read() | {key: line}
            with self._reporting_errors():
                lines = (
                    orjson.dumps(line.model_dump(mode="json")) for line in self._lines.values()
                )
                self._replace(b"".join(line + b"\n" for line in lines))

    def _read(self) -> dict[str, _Line]:
        path = self.directory / RESULTS_FILE
        with self._reporting_errors():
            if not path.exists():
                return {}
            with path.open("rb") as source:
                data = source.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise BadConfiguration(
                f"{path}: more than {MAX_FILE_BYTES:,} bytes; choose another --out"
            )
        lines = {}
        for number, text in enumerate(data.splitlines(), 1):
            try:
                line = _Line.model_validate_json(text)
            except ValidationError:
                raise BadConfiguration(
                    f"{path}, line {number}: no result of this version; delete the line, or choose "
                    "another --out"
                ) from None
            lines[line.key] = line
        return lines

    def _replace(self, data: bytes) -> None:
        partial = self.directory / f".{RESULTS_FILE}.part"
        with partial.open("wb") as target:
            target.write(data)
            target.flush()
            os.fsync(target.fileno())
        partial.replace(self.directory / RESULTS_FILE)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the file against other processes within the block."""
        with self._reporting_errors():
            lock = (self.directory / _LOCK).open("w")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BadConfiguration(
                f"--out {self.directory}: {error.strerror or error}; give a directory that can be "
                "written"
            ) from None
