"""The gateway: examples, labels and answers of feeds over HTTP.

It appends entries and waits for the answers of workers. Imports `reading`, `push`, `broker` and
what these import. Only its command imports this folder, which needs starlette and uvicorn.
"""
