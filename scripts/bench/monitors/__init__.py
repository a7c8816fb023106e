"""Monitors against other detectors, on simulated streams whose changes are known."""
