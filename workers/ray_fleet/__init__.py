"""Processes on a Ray cluster: the shards of a fleet, and the configurations of a backtest.

The shards run a `runner`, the tasks a backtest of `offline`; this folder imports both. Only the
command line imports this folder, so that Ray stays optional.
"""
