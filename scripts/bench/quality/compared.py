"""What the benchmarks of quality and their pages compare: ours with the best other method."""

from collections.abc import Sequence

from pandas import DataFrame

from scripts.bench.report import Values


def best_others(
    figures: DataFrame, ours: str, near: float, sign: int = -1, left_out: Sequence[str] = ()
) -> DataFrame:
    """Return ours and the best other column of each row that has both, and whether ours is near.

    `sign`: -1 if less is better. `ahead` is above 0 where ours is better.

    >>> losses = DataFrame({"ours": [0.2, 0.5], "a": [0.3, 0.4], "b": [0.4, 0.6]})
    >>> best_others(losses, "ours", near=0.003).method.tolist()
    ['a', 'a']
    >>> best_others(losses, "ours", near=0.003).near.tolist()
    [True, False]
    """
    others = figures.drop(columns=[ours, *left_out], errors="ignore").dropna(how="all")
    if ours not in figures or others.empty:
        return DataFrame()
    others = others[figures[ours].reindex(others.index).notna()]
    found = DataFrame({"ours": figures[ours].reindex(others.index)})
    found["best"] = (sign * others).max(axis=1) * sign
    found["method"] = (sign * others).idxmax(axis=1)
    found["ahead"] = sign * (found.ours - found.best)
    found["near"] = found.ahead >= -near
    return found


def records(frame: DataFrame) -> list[Values]:
    """Return a row of JSON values for each row of the frame; nothing for what is not a number."""
    rows = frame.to_dict("records")
    return [{str(name): None if x != x else x for name, x in row.items()} for row in rows]
