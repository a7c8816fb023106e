"""A committee: diverse machines on one training set, stacked by their progressive scores.

The folder holds the members, their sigmoids and their stack. It holds no scaling and no calibration
set. It may import what `refit` may import.
"""
