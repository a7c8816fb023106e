import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for a busy processor take minutes; the benchmark has one thread too."""
    with threadpool_limits(1):
        yield
