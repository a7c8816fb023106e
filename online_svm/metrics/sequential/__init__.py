"""Sequential tests that stay valid under repeated looks: bets, martingales, confidence sequences.

The tests, their boundaries and the monitors of a feed live here; statistics for a single look do
not. May import `metrics`, `compiled`, `config`, `storage`, `stream`, `types` and `errors`.
"""
