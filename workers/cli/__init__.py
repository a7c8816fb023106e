"""The command line, a file a group."""

from workers.cli.app import main

__all__ = ["main"]
