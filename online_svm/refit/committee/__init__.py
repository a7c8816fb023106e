"""A committee: unlike machines on one training set, weighed by what they said of it before."""
