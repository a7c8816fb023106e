"""The live page of feeds, and the report of a past run."""
