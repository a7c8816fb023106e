"""Workers from a warmed parent, and what an uninterrupted one answers."""

import os

import pytest
from fault_workers import Nursery
from world import drain, outcome, push, rows, session

from workers.broker.store import Store


def asked(name, default):
    """Return how many times to do something: a variable of the environment, or the default."""
    return int(os.environ.get(f"CHAOS_{name}", default))


@pytest.fixture(scope="session")
def times():
    """How many of each fault to inject: 15 minutes' worth unless the environment says otherwise."""
    names = {"KILLS": 200, "PAUSES": 50, "STARTS": 100, "REDIS": 20, "CUTS": 40}
    names |= {"INSIDE": 40, "PROCESSES": 10}
    return {name: asked(name, default) for name, default in names.items()}


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    nursery = Nursery(tmp_path_factory.mktemp("nursery") / "workers.log")
    yield nursery
    nursery.close()


@pytest.fixture
def expected_of(embedded_url, feed):
    """Return what an uninterrupted session answers to the first `count` entries."""

    def answer(count):
        with Store(embedded_url, f"{feed}-whole", block_ms=20) as store:
            push(store, rows(count))
            drain(session(store, batch=64), count)
            return outcome(store)

    return answer


@pytest.fixture
def told(capsys):
    """Print a line whatever pytest captures: what was injected, and the digest that came out."""

    def tell(injected, position=None):
        came = (
            "" if position is None else f"; {position.seq} answers, digest {position.digest.hex()}"
        )
        with capsys.disabled():
            print(f"\n  {injected}{came}")

    return tell
