"""Scores and validity tests of probabilistic predictions.

The folder has scores of finished runs, calibration statistics, decision costs and figures of recent
examples; `sequential` has tests that stay valid under repeated looks. Calibrators are in
`calibration`. The folder may import `calibration`, `compiled`, `config`, `storage`, `stream`,
`types` and `errors`.
"""
