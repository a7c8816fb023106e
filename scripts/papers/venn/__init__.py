"""Lambrou et al. (2012)."""
