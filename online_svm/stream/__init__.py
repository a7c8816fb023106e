"""Examples, labels, features and predictions of a stream, as values.

The folder has the schema of features and labels, the columns of an answer, the fields of reports,
and the split into training and calibration examples. It may import `storage`, `compiled`, `config`,
`errors`, `rejections` and `types`.
"""
