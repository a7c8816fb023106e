"""A simulation of a fleet: how long feeds go unanswered when processes, machines and Redis fail."""
