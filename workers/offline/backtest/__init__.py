"""Backtests: several configurations over one recorded history, each answer before its label.

Reads no live feed except through `history`. Imports `session`, `reading` and the
folders below.
"""
