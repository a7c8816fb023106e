"""Maps from the scores of all classes to the probabilities of all classes at once."""
