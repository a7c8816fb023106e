"""Backtests: several configurations over one recorded history, with each answer before its label.

Only `history` reads a feed. It imports `admin`, `session`, `reading` and the folders below.
"""
