"""A feed as it stands and stood, read and never written: its status, its streams and its labels."""
