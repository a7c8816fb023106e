"""The version of the schema in messages.py, apart: the models take a worker a while to load."""

VERSION = 2
