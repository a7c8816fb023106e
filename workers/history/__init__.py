"""Past runs: what was answered, with the labels that were learned."""
