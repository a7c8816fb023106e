"""Processes that a cluster of Ray places on its machines: the shards of a fleet, and backtests."""
