"""Build the package: the compiler of its kernels, and the backend that pip calls.

Nothing here is installed. It imports only the standard library and what `build-system.requires` of
`pyproject.toml` names.
"""
