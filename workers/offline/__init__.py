"""Past runs: archives of a feed, backtests, comparisons, and explanations of old answers.

The loop that serves feeds is not here. Imports `admin`, `session`, `reading` and the folders below.
"""
