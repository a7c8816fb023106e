"""Scorers: processes that answer requests of one feed with its newest published state."""
