"""Joins the answers of several feeds that score the same ids into one answer stream."""
