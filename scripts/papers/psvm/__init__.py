"""Niaf et al."""
