"""One feed: take it over, answer its entries, commit the answers, and leave snapshots.

`feed_session.py` is the part common to all sessions, `session.py` is for feeds with their own
input, `join/` for feeds whose input is the answers of others. A session starts after the checks
(`preflight.py`) and the replay (`recovery.py`, `replay.py`); `snapshots.py` has the policy and the
format of snapshots. A session has no threads and knows no other feed; `runner` does. This folder
may import `refit`, `push`, `reading`, `broker`, `feed`, `message` and `config`, and `online_svm`.
"""
