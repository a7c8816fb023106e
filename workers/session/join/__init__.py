"""A feed whose input is a join of other feeds' answers to the same ids.

`rows.py` joins and `answers.py` makes the payloads, both without I/O; `sources.py` reads the source
feeds; `session.py` commits. This folder may import what `session` may.
"""
