"""Refits in a process of their own."""
