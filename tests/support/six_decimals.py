"""The numbers of an answer as its payload has them, one at a time: the slow, obvious way."""

from itertools import accumulate, pairwise


def whole(number):
    return round(number * 1_000_000)


def shares(numbers):
    """Return a distribution in millionths: the differences of the rounded partial sums."""
    sums = [whole(total) for total in accumulate(numbers)]
    return [after - before for before, after in pairwise([0, *sums])]


def six(number):
    return number if number is None or abs(number) >= 1e9 else whole(number) / 1_000_000


def rounded(row):
    """Return the numbers of a prediction as a payload has them, one at a time."""
    points = shares(row.probabilities)
    intervals = [
        (min(whole(lower), point), max(whole(upper), point))
        for (lower, upper), point in zip(row.intervals, points, strict=True)
    ]
    found = {
        "probabilities": points,
        "intervals": intervals,
        "venn": [tuple(map(whole, pair)) for pair in row.venn],
        "maps": {name: shares(numbers) for name, numbers in row.maps.items()},
    }
    if row.map_intervals is not None:
        found["map_intervals"] = {
            name: [tuple(map(whole, pair)) for pair in pairs]
            for name, pairs in row.map_intervals.items()
        }
    if row.label in row.classes and row.probabilities:
        chosen = row.classes.index(row.label)
        (found["lower"], found["upper"]), found["probability"] = intervals[chosen], points[chosen]
    found = in_units(found)
    found["scores"] = [six(number) for number in row.scores]
    return found | {
        name: six(getattr(row, name)) for name in ("expected_cost", "label_probability")
    }


def in_units(millionths):
    """Return nested whole numbers of millionths as numbers."""
    if isinstance(millionths, dict):
        return {name: in_units(part) for name, part in millionths.items()}
    if isinstance(millionths, list | tuple):
        return type(millionths)(map(in_units, millionths))
    return millionths / 1_000_000


def point(probabilities):
    """Return the probabilities of an answer as its payload has them."""
    return in_units(shares(probabilities))
