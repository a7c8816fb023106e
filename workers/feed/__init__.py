"""What a feed is, without I/O: position, state, commit, agreement."""
