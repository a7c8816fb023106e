"""A feed whose input is a join: the answers of other feeds that score the same ids.

`rows.py` joins and `answers.py` makes the payloads, both without I/O; `sources.py` reads the other
feeds, and `session.py` commits. It may import what `session` may.
"""
