"""One worker: preflight, recovery, the loop, snapshots, the graceful stop."""
