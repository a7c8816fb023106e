"""All of Redis: connection, commands, keys, lease, permissions, the embedded server."""
