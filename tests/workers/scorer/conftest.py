"""A desk: a feed, its worker, its scorers and an asker."""

from contextlib import closing

import pytest
from scorer_desk import Desk


@pytest.fixture
def desk(store):
    with closing(Desk(store)) as desk:
        yield desk
