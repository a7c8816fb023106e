"""Archives: the history of a feed as Parquet files, which can be written while it is answered.

It needs pyarrow, which only `parquet` imports. It imports `admin`, `session`, `reading`, `broker`
and the folders below.
"""
