"""A worker process: which feeds it answers, in one loop, and what they share.

`service.py` starts a worker; `feed_supervisor.py` adds and removes feeds; `loop.py` gives each
`FeedTask` its turns, and waits for all of them at once. Threads do what may
block: leases, refits, snapshots that are fetched, nodes that do not answer. What one feed does with
its entries is in `session`. This folder may import `monitor`, `session` and what `session` may.
"""
