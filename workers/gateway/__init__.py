"""The gateway: examples, labels and answers of feeds over HTTP.

It adds entries and waits for answers; only workers compute them. Imports `reading`, `push`,
`broker` and the folders below. Only its command imports this folder: it needs starlette and
uvicorn.
"""
