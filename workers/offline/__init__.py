"""Past runs: archives of a feed, backtests, comparisons, and explanations of old answers.

It imports `admin`, `session`, `reading` and the folders below, but not the loop of the worker.
"""
