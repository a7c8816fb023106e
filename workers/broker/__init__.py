"""All of Redis: connections, streams, groups, state, scripts, permissions, the embedded server.

Other folders read and write through `Store`, `FeedReader`, `Connection` and `Group` and do not
import redis. This folder imports `feed` and `config`.
"""
