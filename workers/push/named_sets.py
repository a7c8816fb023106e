"""Data sets by name: the benchmark sets, and those that come with river."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.push.rows import BadSource, Layout, Reading, Row, label_text, refuse_columns


def named_rows(name: str, reading: Reading, layout: Layout) -> Iterator[Row]:
    """Return the rows of a named data set."""
    from workers.push import datasets as data

    refuse_columns(reading, "a data set by name")
    layout.label = "its own" if reading.labelled else None
    if name in data.NAMES:
        dataset = data.load(name, reading.data_dir)
        return (
            Row(x.tolist(), str(y) if reading.labelled else None)
            for x, y in zip(dataset.X, dataset.y, strict=True)
        )
    return _river_rows(name, reading)


def comes_with_river(name: str) -> bool:
    """Return whether river has a data set of examples under a name.

    Examples
    --------
    >>> comes_with_river("Phishing"), comes_with_river("phishing")
    (True, False)
    """
    return _river_kind(name) is not None


def _river_kind(name: str) -> Any:
    """Return the class of a data set of river; None if it has none of that name."""
    from river import datasets

    kind = getattr(datasets, name, None)
    is_one = isinstance(kind, type) and issubclass(kind, datasets.base.FileDataset)
    return kind if is_one else None


def _river_rows(name: str, reading: Reading) -> Iterator[Row]:
    kind = _river_kind(name)
    if kind is None:
        from workers.push.datasets import NAMES

        if Path(name).is_dir():
            raise BadSource(f"{name}: a directory; name a file in it")
        raise BadSource(
            f"{name}: no such file, and no data set of that name; known: {', '.join(NAMES)}, "
            "Phishing, ImageSegments, Bananas"
        )
    dataset = kind()
    if not dataset.path.exists():
        raise BadSource(f"{name} does not come with river: download it with river first")
    return (Row(x, label_text(y) if reading.labelled else None) for x, y in dataset)
