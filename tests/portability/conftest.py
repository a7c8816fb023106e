"""What the tests of other machines share."""

import pytest
from emulated_machine import emulated_in


@pytest.fixture(scope="session")
def emulated(tmp_path_factory):
    return emulated_in(tmp_path_factory.mktemp("aarch64") / "debian")
