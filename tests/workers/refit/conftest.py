"""The refits of a short stream."""

import pytest
from refits import expected_of, tasks_of


@pytest.fixture(scope="session")
def tasks():
    return tasks_of()


@pytest.fixture(scope="session")
def expected(tasks):
    """Their results, and the states of the learner in between."""
    return expected_of(tasks)
