"""Maps from scores to probabilities, one method a file."""
