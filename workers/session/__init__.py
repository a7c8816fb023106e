"""One feed at work: take it over, answer its entries, commit them, and leave snapshots.

`feed_session.py` is what every session does, `session.py` a feed with input of its own, `join/` a
feed whose input is the answers of others. Before a session come the checks (`preflight.py`) and the
replay (`recovery.py`, `replay.py`); `snapshots.py` decides all about snapshots. A session
knows no thread, no other feed, and waits for nothing: `runner` does. This folder may import
`refit`, `push`, `reading`, `broker`, `feed`, `message` and `config`, and `online_svm`.
"""
