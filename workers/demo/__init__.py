"""The demonstration: three real feeds, a worker each, a live view, and a picture at the end."""
