"""Scorers: processes that answer requests of one feed with its newest published state.

They learn nothing and write no answers of the feed. Imports `monitor`, `session`, `reading` and the
folders below.
"""
