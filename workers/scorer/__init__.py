"""Scorers: processes that answer requests of a feed with its newest published state.

They learn nothing and do not write to the feed's `out`. Imports `monitor`, `session`, `reading` and
what these import.
"""
