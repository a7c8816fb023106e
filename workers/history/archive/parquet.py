"""The one import of pyarrow: it is an optional extra, and takes a while to load."""

from typing import TYPE_CHECKING, Any

from workers.errors import BadConfiguration

if TYPE_CHECKING:
    from types import ModuleType

MISSING = "archives are Parquet files, which need pyarrow: pip install 'online-svm[archive]'"


def arrow() -> "ModuleType":
    """Return `pyarrow`, with `pyarrow.parquet` and `pyarrow.compute` loaded.

    Raises
    ------
    BadConfiguration
        If it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise BadConfiguration(MISSING) from None
    found: Any = pyarrow
    return found  # type: ignore[no-any-return]  # it ships no type information
