"""Examples, labels, features and predictions of a stream, as values.

Here live the schema of features and labels, the columns of an answer, the fields of reports, and
the split into training and calibration examples. Models, calibrators and their refits live
elsewhere. May import `storage`, `compiled`, `config`, `errors`, `rejections` and `types`.
"""
