"""Results of finished configurations in a directory, so that a backtest can be continued.

A result is stored under a key, a digest of everything that determines it: as the file KEY.json,
which is written whole.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

import online_svm
from workers.config.files import read_regular
from workers.errors import BadConfiguration
from workers.offline.backtest.history import RecordedEntries
from workers.offline.backtest.prequential import Configuration
from workers.offline.backtest.result import BacktestResult

MAX_FILE_BYTES = 1 << 24  # largest file; a result takes some ten thousand bytes

_CODE = {".py", ".so", ".pyd"}  # suffixes of code files: modules, and the compiled kernels


def libraries() -> dict[str, str]:
    """Return the versions of the libraries that determine the figures."""
    return {"numpy": version("numpy")}


def key(configuration: Configuration, recording: RecordedEntries) -> str:
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


class _KeptResult(BaseModel):
    """The content of a file; name and settings are for people."""

    model_config = ConfigDict(extra="forbid")

    name: str
    settings: dict[str, Any]
    result: BacktestResult


class KeptResults:
    """The results in a directory, which is created; its parent must exist.

    Raises BadConfiguration if the directory cannot be written, or a file of it is no result.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with self._reporting_errors():
            directory.mkdir(exist_ok=True)
            if not os.access(directory, os.W_OK):
                raise PermissionError(EACCES, os.strerror(EACCES))

    def get(self, key: str) -> BacktestResult | None:
        """Return the result of a key; None if there is none."""
        path = self._path(key)
        with self._reporting_errors():
            if not path.exists():
                return None
            data = read_regular(path, MAX_FILE_BYTES)
        try:
            return _KeptResult.model_validate_json(data[:MAX_FILE_BYTES]).result
        except ValidationError:
            raise BadConfiguration(
                f"{path}: no result of this version; delete the file, or choose another --out"
            ) from None

    def add(self, key: str, configuration: Configuration, result: BacktestResult) -> None:
        """Add a result, whole or not at all."""
        kept = _KeptResult(name=configuration.name, settings=configuration.settings, result=result)
        partial = self.directory / f".{key}.{os.getpid()}.part"
        with self._reporting_errors():
            try:
                with partial.open("wb") as target:
                    target.write(orjson.dumps(kept.model_dump(mode="json")))
                    target.flush()
                    os.fsync(target.fileno())
                partial.replace(self._path(key))
            finally:
                partial.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}.json"

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BadConfiguration(
                f"--out {self.directory}: {error.strerror or error}; give a directory that can be "
                "written"
            ) from None
