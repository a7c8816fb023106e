"""Figures over the most recent scored examples."""
