"""Messages of a feed: the schema, decoding, encoding."""

VERSION = 2
"""Version of the schema of messages. Here, since the models of `schema` take long to load."""
