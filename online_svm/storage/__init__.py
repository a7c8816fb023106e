"""Serialisation of state, without pickle.

The folder has the container format, the schema of stored fields, and the files of saved models. It
may import `stream`, `compiled`, `config`, `errors` and `types`.
"""
