"""A worker process: one loop that answers many feeds, and the resources that they share.

`service.py` starts a worker; `feed_states.py` is the table of what a feed can do and when;
`feed_task.py` is one feed; `loop.py` adds and removes feeds, gives each its turns, and waits for
all of them at once. What may block runs in threads: leases, refits, reading
snapshots ahead, probes of silent nodes. How a feed answers its entries is in `session`. This folder
may import `monitor`, `session` and what `session` may.
"""
