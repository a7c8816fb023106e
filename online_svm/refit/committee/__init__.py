"""A committee: diverse machines on one training set, stacked by their progressive scores.

The folder has the members, their sigmoids and their stack, and works on scaled rows. It may import
what `refit` may import.
"""
