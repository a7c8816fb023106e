"""What enters and leaves a feed: the schema, decoding, encoding."""
