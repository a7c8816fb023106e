"""The command line: one file for each command."""

from workers.cli.app import main

__all__ = ["main"]
