"""Erase a person's rows from a feed, which goes on without them."""
