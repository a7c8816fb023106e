"""Messages of a feed: the schema, decoding of input, encoding of answers.

No streams and no Redis: bytes come in and go out. Imports `online_svm`, `feed` and `config`.
"""
