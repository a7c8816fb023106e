"""The version of the wire schema (messages.py), apart: the models take a worker a while to load."""

VERSION = 1
