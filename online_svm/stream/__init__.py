"""Examples, labels, features and predictions of a stream, and which examples train."""
