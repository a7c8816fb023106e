"""A feed as Parquet files: written as it is answered, and read again as a history."""
