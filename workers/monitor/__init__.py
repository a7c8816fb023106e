"""Measurements of a worker, and those who are told: metrics endpoint, probes, webhook of alarms."""
