"""Messages of a feed: the schema, decoding of input, encoding of answers, codes.

No streams and no Redis: bytes come in and go out. Imports `online_svm`, `feed` and `config`.
"""

VERSION = 2
"""Version of the schema of messages. Here, since the models of `schema` take long to load."""
