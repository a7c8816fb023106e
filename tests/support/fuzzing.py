"""How many examples a fuzzed test has: `make fuzz` multiplies them by FUZZ_FACTOR."""

import os

from hypothesis import HealthCheck, settings

FACTOR = int(os.environ.get("FUZZ_FACTOR", "1"))


def fuzz(count):
    return settings(
        max_examples=FACTOR * count,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
