"""A feed as it stands and stood, read and never written: its lag, its answers and its labels."""
