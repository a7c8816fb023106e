"""Processes on a Ray cluster: the shards of a fleet, and the configurations of a backtest.

Serving itself is in `runner`, the backtest in `offline`; this folder imports both.
Only the command line imports this folder, so that Ray stays optional.
"""
