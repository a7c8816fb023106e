"""Messages of a feed: the schema, decoding, encoding."""
