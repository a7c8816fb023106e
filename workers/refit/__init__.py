"""Refits in other processes: one pool computes the refits of all feeds of a worker.

A feed's `PooledRefitter` submits tasks and gets futures; `Schedule` chooses the process for each
task; `child.py` is the program of such a process. The predictor decides at which example number a
refit takes effect, before it submits the task. This folder knows no feeds, commits or Redis; it may
import `broker` and what that imports, and `online_svm`.
"""
