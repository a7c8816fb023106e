"""Scores and validity tests of probabilistic predictions.

Scores of finished runs, calibration statistics, decision costs and figures over recent examples
live here; `sequential` holds tests that stay valid under repeated looks. Calibrators and their
refits do not belong here. May import `calibration`, `compiled`, `config`, `storage`, `stream`,
`types` and `errors`.
"""
