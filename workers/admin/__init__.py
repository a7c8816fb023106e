"""Feeds from outside: how they stand, fork, reset, verify, repair."""
