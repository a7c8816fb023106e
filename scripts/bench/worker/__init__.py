"""A worker: its rate, its latency, its processor time, and the gateway before it."""
