"""How much input may wait for the worker before a push waits, unless it is told otherwise."""

HIGH_WATER = 1_000_000
"""Entries."""

HIGH_WATER_BYTES = 1 << 28
"""Bytes of the names and values of their fields."""
