"""Quality of the probabilities beside those of others, on streams answered in order."""
