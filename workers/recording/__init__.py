"""Recordings: a feed at rest as one SQLite file, and the commands over it.

It imports `admin`, `session`, `reading` and the folders below, but not the loop of the worker.
"""
