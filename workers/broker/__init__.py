"""All of Redis: connections, streams, groups, state, scripts, permissions, the embedded server.

Other folders ask for entries, positions and fields through `Store`, `FeedReader`, `Connection` and
`Group`; they send no command of their own and do not import redis. What entries mean is in
`message`, what a feed is in `feed`; this folder imports both, and `config`.
"""
