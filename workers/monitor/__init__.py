"""What is measured of a worker, and told: the metrics endpoint, probes, the webhook of alarms."""
