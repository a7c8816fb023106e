"""Default high-water marks: input that may wait before a push waits."""

HIGH_WATER = 1_000_000
"""Entries."""

HIGH_WATER_BYTES = 1 << 28
"""Bytes of the names and values of their fields."""
