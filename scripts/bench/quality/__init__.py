"""Quality of the probabilities against other methods, on streams answered in order."""
