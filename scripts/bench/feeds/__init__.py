"""Many feeds in one process: memory, processor time, latency, starts."""
