"""What many feeds in one process cost: memory, processor time, latency, starts."""
