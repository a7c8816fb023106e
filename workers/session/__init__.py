"""One feed at work: preflight, recovery, replay, answer, commit, snapshots; no loop."""
