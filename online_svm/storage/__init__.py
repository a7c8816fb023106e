"""State to bytes and back, without pickle."""
