"""`bench nodes`: what feeds at rest cost on a Redis Cluster."""

from dataclasses import asdict
from typing import Annotated

import typer

from scripts.command_line import stage_progress
from workers.cli.common import Json, Redis, redis_url, show, show_json

MOST = 10_000


def nodes(
    redis: Redis = None,
    feeds: Annotated[
        str, typer.Option("--feeds", metavar="N,...", help="Numbers of feeds.")
    ] = "200,1000",
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="Of rest, of each.")] = 30.0,
    json: Json = False,
) -> None:
    """Measure what feeds at rest cost in one process on a Redis Cluster.

    --redis names a cluster that does nothing else. Feeds of the name bench-nodes-... are made in it
    and deleted at the end. Told are the processor time of the process and of all nodes, the
    connections, and how long an example to a feed at rest waits for its answer.
    """
    from scripts.bench.feeds.nodes import measure
    from workers.errors import BadConfiguration

    counts = [int(count) for count in feeds.split(",") if count.strip().isdigit()]
    if len(counts) != feeds.count(",") + 1 or min(counts) < 1 or max(counts) > MOST:
        raise BadConfiguration(f"--feeds {feeds!r}: write numbers from 1 to {MOST:,}, as 200,1000")
    with stage_progress() as tell:
        for rest in measure(redis_url(redis), counts, seconds, tell):
            show_json(asdict(rest)) if json else show(str(rest))
