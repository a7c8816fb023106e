"""How good the probabilities are, beside those of others, on streams answered in order."""
