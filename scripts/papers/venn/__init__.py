"""Lambrou et al. (2012)."""

from scripts.papers.venn.experiments import DATA, NOTES, PAPER, run

__all__ = ["DATA", "NOTES", "PAPER", "run"]
