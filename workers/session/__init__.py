"""One feed: take it over, answer its entries, commit the answers, and leave snapshots.

`session.py` is the state machine. A session starts after the checks (`preflight.py`) and the replay
(`recovery.py`, `replay.py`); `snapshots.py` has the policy and the format of snapshots. It has no
threads and knows no other feed; `runner` does. This folder may import `refit`, `broker`, `message`,
`feed` and `config`, and `online_svm`.
"""
