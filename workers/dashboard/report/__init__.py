"""The report of a past run: one file, readable without a network, with a summary in sentences."""
