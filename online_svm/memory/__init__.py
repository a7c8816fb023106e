"""Experts that learn from all rows: two boosted forests, and stacks of them and a present model."""
