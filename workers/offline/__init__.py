"""Past runs: tables of answers, backtests, comparisons, and explanations of old answers.

It imports `recording` and the folders below, but not the loop of the worker.
"""
