"""One node of Ray for the tests of a file."""

import pytest
from ray_nodes import cluster
from system_tools import package


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """A cluster of one node with two processors."""
    package("ray", "pip install 'online-svm[ray]'")
    with cluster([2], tmp_path_factory.mktemp("ray") / "notes") as nodes:
        yield nodes
