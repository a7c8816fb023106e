"""Scores and validity of probabilistic predictions."""
