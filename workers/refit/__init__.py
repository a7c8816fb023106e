"""Refits in processes of their own: one pool computes the refits of all feeds of a worker.

A feed's `PooledRefitter` submits tasks and gets futures; `Schedule` chooses the process for each
task; `child.py` is what such a process runs. When a refit takes effect is not decided here:
the predictor fixes the example number before it submits. No feed, commit or Redis is known here.
This folder may import `broker` and what is below it, and `online_svm`.
"""
