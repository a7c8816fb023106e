"""Measurements of a worker, and their outlets: metrics endpoint, probes, alarm webhook."""
