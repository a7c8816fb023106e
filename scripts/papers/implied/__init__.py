"""Nalbantov & Ivanov."""
