"""One worker's life: preflight, recovery, the loop, snapshots, the graceful stop."""
