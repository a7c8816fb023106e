"""The soak finds what grows and what slows down, and the real worker does neither."""

import random

import pytest

from scripts.bench.commands import app
from scripts.bench.scale import soak
from scripts.bench.scale.soak import checks, most_kept_input
from scripts.command_line import main
from workers.config.settings import WorkerSettings
from workers.feed.retention import keep, known_marks
from workers.feed.state_fields import Mark

LEVEL = {
    "worker": 200, "refits": 300, "redis": 900_000_000, "input": 20_000, "out": 50_000, "dlq": 0,
    "out_bytes": 50_000_000, "met_bytes": 1_000,
    "snapshots": 2, "snapshot_bytes": 1_000,
}  # fmt: skip


def samples(**changing):
    """Return a run of 2 million examples at 20,000 a second; what changes is given by the share."""
    shares = [i / 400 for i in range(1, 401)]
    return [
        LEVEL
        | {"seq": int(2e6 * share), "seconds": 100 * share}
        | {name: value(share) for name, value in changing.items()}
        for share in shares
    ]


def broken(run):
    return [one["name"] for one in checks(run, WorkerSettings()) if not one["ok"]]


@pytest.mark.parametrize(
    ("name", "grows"),
    [
        ("worker's memory", {"worker": lambda share: 200 + 20 * share}),
        ("refit process's peak memory", {"refits": lambda share: 300 + 30 * share}),
        ("bytes of a snapshot", {"snapshot_bytes": lambda share: 1_000 + 100 * share}),
        ("bytes of an answer", {"out_bytes": lambda share: int(5e7 * (1 + 0.2 * share))}),
        ("examples a second", {"seconds": lambda share: 100 * share * (1 + share)}),
        ("entries of in", {"input": lambda share: int(1e5 * share)}),
        (
            "bytes of out",
            {"out": lambda share: int(2e6 * share), "out_bytes": lambda share: int(2e9 * share)},
        ),
        ("bytes of met", {"met_bytes": lambda share: int(2e7 * share)}),
        ("entries of dlq", {"dlq": lambda share: int(2 * share)}),
        ("snapshots", {"snapshots": lambda share: 2 + int(2 * share)}),
    ],
)
def test_whatever_grows_or_slows_down_is_named(name, grows):
    (found,) = broken(samples(**grows))
    assert found.startswith(name)


@pytest.mark.parametrize("window", [10, 600, 1_000, 1_001, 1_500, 9_000, 30_000])
def test_input_never_holds_more_than_the_bound_and_comes_near_to_it(window):
    """A feed whose snapshots come late by up to a batch, by the rule that trims it."""
    settings = WorkerSettings(window=window, replay_budget=1_000, batch=100)
    late, marks, at, trimmed, most = random.Random(window), known_marks((), (None,)), [0, 0], 0, 0
    for _ in range(200):
        n = at[-1] + settings.snapshot_every + late.choice((0, late.randrange(100), 99))
        most = max(most, n - trimmed)
        previous = Mark(at[-1], b"%d-0" % at[-1]) if at[-1] else None
        kept = keep(marks, Mark(n, b"%d-0" % n), previous and previous.cursor, window)
        marks, at = kept.marks, [*at, n]
        trimmed = int(kept.trim.partition(b"-")[0] or trimmed)
    assert 0.85 * most_kept_input(settings) < most <= most_kept_input(settings)


def test_a_level_run_breaks_no_bound_while_redis_fills():
    assert broken(samples()) == []
    fills = {"out": lambda share: min(int(2e6 * share), 1_000_000)}
    assert broken(samples(**fills, redis=lambda share: int(1e9 * min(share, 0.5)))) == []
    (found,) = broken(samples(**fills, redis=lambda share: int(1e9 * share)))
    assert found.startswith("Redis's memory")


@pytest.mark.slow
def test_a_short_soak_of_the_real_worker_is_bounded(monkeypatch):
    """Streams, snapshots and groups keep their bounds; `make soak` shows what is level.

    Two snapshots differ by up to a tenth: by the rows since the last refit and by the support
    vectors of the moment. A run this short has five, and its rate is that of a second.
    """
    monkeypatch.setattr(soak, "MAX_MEMORY_RATIO", 1.25)
    monkeypatch.setattr(soak, "MIN_RATE_RATIO", 0.0)
    (found,) = soak.run(90_000)
    assert found.rows[0]["examples"] == 90_000


def test_the_command_fails_when_a_bound_is_broken(monkeypatch, capsys):
    grown = samples(worker=lambda share: 200 + 20 * share)
    monkeypatch.setattr(soak, "soaked", lambda _: grown)
    with pytest.raises(SystemExit) as ended:
        main(app(["scale"]), "bench", ["scale"])
    assert ended.value.code == 1
    assert "BROKEN" in capsys.readouterr().out
