"""The only loop: its feeds, leases, turns, blocked reads, shards, outages."""
