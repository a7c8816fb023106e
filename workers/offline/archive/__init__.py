"""Archives: a feed as Parquet files, written while it is answered, and read as its history.

Needs pyarrow, which only `parquet` imports. Imports `admin`, `session`, `reading`, `broker` and the
folders below.
"""
