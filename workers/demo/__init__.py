"""The demonstration: two real feeds, a worker each, a live view, and a picture at the end."""
