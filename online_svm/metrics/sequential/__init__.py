"""Tests that may be looked at after every example: bets, martingales, confidence sequences."""
