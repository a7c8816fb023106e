"""What flows: examples, labels, features, predictions, and which of them train."""
