"""`bench fleet-model`: how long feeds go unanswered."""

from typing import Annotated

import typer

from scripts.bench.fleet_model.fleet import Failures, Fleet, Order, Timings
from workers.cli.common import Json, show, show_json

FLEET, FAILURES, TIMINGS = Fleet(), Failures(), Timings()

Days = Annotated[float, typer.Option("--days", min=1, max=100_000, help="Simulated.")]


def _every(name: str, what: str) -> object:
    """Return the option that says how often something fails."""
    return typer.Option(
        f"--{name}-days", min=0.01, help=f"Days between two {what}.", rich_help_panel="Assumptions"
    )


def _takes(name: str, what: str) -> object:
    """Return the option that says how long a step takes."""
    return typer.Option(name, min=0, help=what, rich_help_panel="Measured, or a setting")


def fleet_model(
    feeds: Annotated[int, typer.Option(min=1, max=1_000_000)] = FLEET.feeds,
    rate: Annotated[
        float, typer.Option(min=0, help="Examples a second, of all feeds.")
    ] = FLEET.rate,
    shards: Annotated[int, typer.Option(min=1, max=10_000, help="Processes.")] = FLEET.shards,
    machines: Annotated[int, typer.Option(min=1, max=10_000)] = FLEET.machines,
    redis: Annotated[int, typer.Option(min=1, max=1000, help="Primaries.")] = FLEET.redis,
    process: Annotated[float, _every("process", "kills of a process")] = FAILURES.process,
    machine: Annotated[float, _every("machine", "losses of a machine")] = FAILURES.machine,
    failover: Annotated[float, _every("redis", "losses of a Redis primary")] = FAILURES.redis,
    upgrade: Annotated[float, _every("upgrade", "rolling upgrades")] = FAILURES.upgrade,
    start: Annotated[float, _takes("--start", "Seconds of a start.")] = TIMINGS.start,
    lease: Annotated[float, _takes("--lease", "Seconds of a lease.")] = TIMINGS.lease,
    detection: Annotated[
        float, _takes("--detection", "Seconds until the loss of a machine is noticed.")
    ] = TIMINGS.detection,
    failover_seconds: Annotated[
        float, _takes("--failover", "Seconds until a replica of Redis is promoted.")
    ] = TIMINGS.failover,
    take_over: Annotated[
        float, _takes("--take-over", "Seconds to take over a feed with nothing to replay.")
    ] = TIMINGS.take_over,
    snapshot_every: Annotated[
        int, _takes("--snapshot-every", "Entries between two snapshots.")
    ] = TIMINGS.snapshot_every,
    replay_rate: Annotated[
        float, typer.Option(min=1, help="Entries a second that a process replays.",
                            rich_help_panel="Measured, or a setting")
    ] = TIMINGS.replay_rate,
    order: Annotated[
        Order, typer.Option(help="In which a process replays its feeds.")
    ] = TIMINGS.order,
    days: Days = 3650,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    json: Json = False,
) -> None:  # fmt: skip
    """Simulate failures, leases and replays: the share of time that each feed is not answered.

    With --json it prints a line for each cause, then one for each feed. The same options give the
    same bytes.
    """
    from scripts.bench.fleet_model.report import lines, load_of, plain
    from scripts.bench.fleet_model.simulate import simulate

    fleet = Fleet(feeds, rate, shards, machines, redis)
    failures = Failures(process, machine, failover, upgrade)
    timings = Timings(
        start, lease, detection, failover_seconds, take_over, snapshot_every, replay_rate, order
    )
    load_of(fleet, timings)  # refuses too few processes before the years are simulated
    found = simulate(fleet, failures, timings, days, seed)
    if json:
        for line in plain(found):
            show_json(line)
        return
    for text in lines(fleet, failures, timings, found):
        show(text)
