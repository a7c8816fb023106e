"""The types of a feed, without I/O: position, state, commit, configuration, codes."""
