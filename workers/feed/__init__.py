"""A feed as types, without I/O: position, state, commit, configuration."""
