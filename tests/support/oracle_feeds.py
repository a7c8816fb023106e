"""Three dozen feeds, one of each mode: the settings of each, and the entries of its input.

Inputs are made of sums and products of `random.Random.random` alone, so they are the same bytes on
every machine. Nothing of the project is imported: a feed is what any client of Redis could send.
"""

import json
from collections import namedtuple
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random

RECORDED = Path(__file__).parents[1] / "oracle" / "digests.json"

Feed = namedtuple("Feed", ["settings", "entries"])
"""Settings, as in a file of settings, and the input entries in order."""


def recorded():
    """Return the digests that are kept, by what answered and the name of the feed."""
    return json.loads(RECORDED.read_text("utf-8"))


QUICK = {
    "window": 200, "refit_every": 50, "metrics_every": 40, "monitors": "off", "maps": ["platt"],
}  # fmt: skip
"""Settings by which a short stream sees many refits and reports."""

SINGLE = QUICK | {"committee": "single"}
TWO = ["no", "yes"]
FOUR = ["a", "b", "c", "d"]


def noise(random):
    return sum(random.random() for _ in range(4)) - 2.0


def two_classes(seed, count, turns_at=None):
    """Yield rows of four features and a label of two; from `turns_at` on labels are exchanged."""
    random = Random(seed)
    for n in range(count):
        x = [round(noise(random), 4) for _ in range(4)]
        is_positive = x[0] + x[1] * x[2] + 0.6 * noise(random) > 0.2
        turned = turns_at is not None and n >= turns_at
        yield x, TWO[is_positive != turned]


def four_classes(seed, count):
    """Yield rows of three features and a label of four, one of them rare."""
    random = Random(seed)
    for _ in range(count):
        label = min(int(random.random() * 3.4), 3)
        centre = [(1.2, 0.0, 0.3), (-1.0, 0.8, 0.0), (0.0, -1.1, -0.6), (0.4, 0.9, 1.5)][label]
        yield [round(c + noise(random), 4) for c in centre], FOUR[label]


def plain(rows):
    return [{"x": json.dumps(x), "y": y} for x, y in rows]


def unlabelled_now_and_then(entries):
    return [{"x": entry["x"]} if i % 9 == 8 else entry for i, entry in enumerate(entries)]


def late(rows, horizon, seed):
    """Return examples with ids, and labels that follow: late, repeated, corrected, unknown."""
    random, due, entries = Random(seed), [], []
    for i, (x, y) in enumerate(rows):
        entries.append({"x": json.dumps(x), "id": f"e{i}"})
        kind = random.random()
        delay = int(random.random() * horizon * (0.9 if kind < 0.85 else 1.6))
        if kind < 0.93:
            due.append((i + delay, {"for": f"e{i}", "y": y}))
        if kind < 0.06:
            due.append((i + delay + 3, {"for": f"e{i}", "y": y}))  # the same again
        elif kind < 0.12:
            due.append((i + delay + 5, {"for": f"e{i}", "y": TWO[y == TWO[0]]}))  # corrected
        elif kind < 0.14:
            due.append((i, {"for": f"unknown{i}", "y": y}))
        due.sort(key=lambda pair: pair[0])
        while due and due[0][0] <= i:
            entries.append(due.pop(0)[1])
    return entries


def repeated(entries, seed):
    """Give each entry an id, and send one in ten again."""
    random, sent = Random(seed), []
    for i, entry in enumerate(entries):
        sent.append(entry | {"id": f"id{i}"})
        if random.random() < 0.1:
            sent.append(sent[int(random.random() * len(sent))])
    return sent


BAD = [
    {"x": x, "y": "yes"} for x in (
        "[1, 2, 3", "[NaN, 1, 2, 3]", "[1e999, 1, 2, 3]", "[1, 2, 3]", "[1, 2, 3, 4, 5]",
        '["1", 2, 3, 4]',
    )
]  # fmt: skip
BAD += [
    {"x": "[1, 2, 3, 4]", "y": "perhaps"}, {"x": "[1, 2, 3, 4]", "y": "yes", "z": "1"},
    {"y": "yes"}, {"x": "[[1, 2], [3, 4]]", "y": "no"}, {"x": '{"a": 1}', "y": "no"},
    {"x": "[1, null, 3, 4]", "y": "no"}, {"x": "[1, 2, 3, 4]", "y": ""},
    {"x": "[1, 2, 3, 4]", "y": "no", "c": "later"}, {"x": "[1, 2, 3, 4]", "y": "no", "p": "0.5"},
    {"x": "[1, 2, 3, 4]", "for": "e1"}, {"x": "\x00\u202e[", "y": "no"},
]  # fmt: skip

LATE = [
    {"x": "[1, 2, 3, 4]", "y": "no", "time": "5"}, {"for": "e1", "y": "no"},
    {"x": "[1, 2, 3, 4]", "y": "no", "s": '{"country": "DE"}'},
    {"x": "[1, 2, 3, 4]", "y": "no", "id": "a" * 300},
]  # fmt: skip
"""Entries that ask for a setting which is off, and an id that is too long."""

REVIEWED = {
    "no": {"no": 0.0, "yes": 1.0, "review": 0.2}, "yes": {"no": 5.0, "yes": 0.0, "review": 0.2},
}  # fmt: skip


def with_bad_rows(entries, bad=BAD):
    """Put an unusable entry after every eighth."""
    mixed = []
    for i, entry in enumerate(entries):
        mixed += [entry, bad[i // 8 % len(bad)]] if i % 8 == 7 else [entry]
    return mixed


def with_gaps(entries, seed):
    random, holed = Random(seed), []
    for entry in entries:
        x = json.loads(entry["x"])
        if random.random() < 0.2:
            x[int(random.random() * len(x))] = None
        holed.append(entry | {"x": json.dumps(x)})
    return holed


def annotated(seed, count):
    """Return entries of which every third has a probability in place of its label."""
    random, entries = Random(seed), []
    for i, (x, y) in enumerate(two_classes(seed, count)):
        said = 0.75 + 0.2 * random.random()
        p = round(said if y == "yes" else 1 - said, 3)
        target = {"p": str(p)} if i % 3 == 2 else {"y": y}
        entries.append({"x": json.dumps(x)} | target)
    return entries


def sliced(seed, count, turns_at):
    """Return entries with a country each; one country's labels are exchanged from `turns_at` on."""
    random, entries = Random(seed), []
    for i, (x, y) in enumerate(two_classes(seed, count)):
        country = ("DE", "FR", "PT")[int(random.random() * 3)]
        if country == "FR" and i >= turns_at:
            y = TWO[y == TWO[0]]
        said = {} if i % 17 == 5 else {"s": json.dumps({"country": country})}
        entries.append({"x": json.dumps(x), "y": y} | said)
    return entries


def named(rows):
    """Return rows whose features have names, in an order that changes, and labels 0 and 1."""
    names, entries = ("width", "age", "height", "Area"), []
    for i, (x, y) in enumerate(rows):
        pairs = [*zip(names, x, strict=True)] * 2
        row = dict(pairs[i % 4 : i % 4 + 4])
        entries.append({"x": json.dumps(row), "y": str(TWO.index(y))})
    return entries


def of_kinds(i, x):
    """Return a row of every kind, some of whose names come late or are absent."""
    at = datetime.fromtimestamp(1_700_000_000 + round(1e6 * x[0]), UTC).isoformat()
    row = {"number": x[1], "category": f"c{round(3 * x[2])}", "boolean": x[3] > 0, "time": at}
    row |= {"text": f"remark {i}"} | ({"late": x[0]} if i >= 60 else {})
    if i % 13 == 5:
        row["number"] = None
    if i % 7 == 3:
        del row[sorted(row)[i % len(row)]]
    return row


def of_every_kind(rows):
    return [{"x": json.dumps(of_kinds(i, x)), "y": y} for i, (x, y) in enumerate(rows)]


def scored(entries, seed):
    """Give examples the scores of two models in turn; some have none, some one that is none."""
    random, found = Random(seed), []
    for i, entry in enumerate(entries):
        if "x" in entry and i % 11 != 3:
            first = json.loads(entry["x"])[0]
            share = min(1.0, max(0.0, 0.5 + 0.25 * first + 0.1 * noise(random)))
            entry = entry | {"score": "7.0" if i % 50 == 7 else str(round(share, 6))}
            entry |= {"score_version": "2"} if i > len(entries) // 2 else {}
        found.append(entry)
    return found


def timed(rows):
    """Return examples a minute apart; some come out of order, and three are of the year 2100."""
    entries = [
        {"x": json.dumps(x), "y": y, "id": f"t{i}", "time": str(60_000 * i - 70_000 * (i % 5 == 4))}
        for i, (x, y) in enumerate(rows)
    ]
    for wrong in (4, 50, 120):
        entries[wrong]["time"] = "4102444800000"
    return entries


def in_turn(rows, length):
    """Let one class alone come for so many rows, then both, and so on."""
    return [
        (x, y if i // length % 2 else TWO[i // length // 2 % 2]) for i, (x, y) in enumerate(rows)
    ]


def of_many_slices(entries):
    """Give each entry a value of a slice: more of them than a report tells apart."""
    return [
        entry | {"s": json.dumps({"country": f"v{i * i % 61}"})} for i, entry in enumerate(entries)
    ]


def identified(rows, missing):
    """Return entries with ids of which every `missing`-th does not come."""
    return [
        {"x": json.dumps(x), "y": y, "id": f"i{n}"}
        for n, (x, y) in enumerate(rows)
        if n % missing != missing - 1
    ]


@cache
def feeds():
    declared = {"classes": TWO}
    sharp = {"window": 300, "refit_every": 100, "metrics_every": 50}
    maps_of_two = ["platt", "isotonic", "binning", "venn-abers", "implied", "mixed"]
    evidential = ["evidential-binning", "evidential-isotonic", "evidential-logistic"]
    joint = ["temperature", "vector", "matrix", "isotonic", "venn-abers", "mixed"]
    return {
        "default": Feed({}, plain(two_classes(1, 700, turns_at=420))),
        "declared": Feed(declared | sharp, unlabelled_now_and_then(plain(two_classes(2, 500)))),
        "members": Feed(
            declared | QUICK | {"committee": ["rbf", "rbf-wide", "logistic"], "seed": 7},
            plain(two_classes(3, 320)),
        ),
        "several": Feed({"classes": FOUR} | sharp, plain(four_classes(4, 450))),
        "discovered": Feed(QUICK, plain(four_classes(5, 300))),
        "weighted": Feed(
            declared | QUICK | {"class_weight": "balanced", "C": 3.0, "gamma": 0.2},
            plain(two_classes(6, 300)),
        ),
        "linear-kernel": Feed(declared | SINGLE | {"kernel": "linear"}, plain(two_classes(7, 300))),
        "psvm": Feed(declared | QUICK | {"learner": "psvm"}, annotated(9, 300)),
        "psvm-oldest": Feed(
            declared | QUICK | {"learner": "psvm", "split": "oldest", "maps": maps_of_two},
            annotated(48, 240),
        ),
        "oldest": Feed(declared | SINGLE | {"split": "oldest"}, plain(two_classes(10, 300))),
        "paper": Feed(
            {"classes": FOUR, "maps": ["platt", "isotonic"]}
            | {"split": "oldest", "refit_every": 4, "window": "none"}
            | {"gamma": 0.5, "interval_level": "none", "monitors": "off"},
            plain(four_classes(12, 140)),
        ),
        "maps": Feed(declared | SINGLE | {"maps": maps_of_two}, plain(two_classes(13, 300))),
        "evidential": Feed(declared | SINGLE | {"maps": evidential}, plain(two_classes(14, 240))),
        "joint": Feed({"classes": FOUR} | SINGLE | {"maps": joint}, plain(four_classes(15, 300))),
        "ranks": Feed(declared | SINGLE | {"taxonomy": "class-rank"}, plain(two_classes(18, 300))),
        "pairs": Feed(declared | SINGLE | {"taxonomy": "venn-abers"}, plain(two_classes(19, 300))),
        "late": Feed(declared | sharp | {"horizon": 60}, late(two_classes(20, 420), 60, 20)),
        "arrival": Feed(
            declared | QUICK | {"horizon": 80, "maturity": "arrival"},
            late(two_classes(21, 300), 80, 21),
        ),
        "dedupe": Feed(
            declared | QUICK | {"dedupe_window": 50}, repeated(plain(two_classes(22, 300)), 22)
        ),
        "refit": Feed(
            declared | sharp | {"on_drift": "refit", "slices": ["country"]}, sliced(23, 600, 250)
        ),
        "reset": Feed(
            declared | sharp | {"on_drift": "reset", "horizon": 30},
            late(two_classes(24, 500, turns_at=300), 30, 24),
        ),
        "rejected": Feed(QUICK | declared, with_bad_rows(plain(two_classes(25, 300)))),
        "costs": Feed(
            declared | SINGLE | {"costs": json.dumps(REVIEWED)},
            with_bad_rows(plain(two_classes(31, 280)), [*BAD, *LATE]),
        ),
        "gaps": Feed(
            declared | QUICK | {"missing": "mean"},
            with_bad_rows(with_gaps(plain(two_classes(26, 260)), 26)),
        ),
        "names": Feed(QUICK | {"labels": "integer"}, named(two_classes(27, 260))),
        "block": Feed(
            declared | QUICK | {"downstream": "block", "retain_out": 100},
            plain(two_classes(29, 260)),
        ),
        "first": Feed(
            declared | SINGLE | {"maps": ["evidential-logistic"]},
            identified(two_classes(30, 300), 11),
        ),
        "second": Feed(
            declared | SINGLE | {"maps": ["platt"], "seed": 5}, identified(two_classes(30, 300), 13)
        ),
        "five": Feed(
            declared
            | QUICK
            | {"committee": ["rbf", "rbf-wide", "rbf-narrow", "trees", "logistic"]},
            plain(two_classes(33, 260)),
        ),
        "kinds": Feed(declared | QUICK, of_every_kind(two_classes(34, 260))),
        "kinds-late": Feed(
            declared | SINGLE | {"horizon": 40},
            [
                entry | {"id": f"k{i}"}
                for i, entry in enumerate(of_every_kind(two_classes(35, 200)))
            ],
        ),
        "score": Feed(
            declared | {"scores": "probability", "metrics_every": 40},
            scored(plain(two_classes(36, 240)), 36),
        ),
        "member": Feed(
            declared | QUICK | {"scores": "probability", "score_use": "member", "horizon": 50},
            scored(late(two_classes(37, 200), 50, 37), 37),
        ),
        "watched": Feed(
            declared | QUICK | {"scores": "probability", "score_use": "watched"},
            scored(plain(two_classes(38, 240)), 38),
        ),
        "budget": Feed(
            declared | SINGLE | {"label_budget": 0.2, "horizon": 30, "monitors": "default"},
            late(two_classes(39, 240), 30, 39),
        ),
        "crowded": Feed(
            SINGLE | {"max_classes": 3, "dedupe_window": 20},
            repeated(plain(four_classes(44, 240)), 44),
        ),
        "timed": Feed(declared | SINGLE | {"horizon": "1h"}, timed(two_classes(45, 240))),
        "in-turn": Feed(
            declared | SINGLE | {"window": 80}, plain(in_turn(two_classes(46, 600), 100))
        ),
        "slices": Feed(
            declared | SINGLE | {"slices": ["country"], "monitors": "default"},
            of_many_slices(plain(two_classes(47, 300))),
        ),
    }
