"""Serialisation of state, without pickle.

Here live the container format, the declared fields of a class, and the files of saved models. Each
class declares its own fields elsewhere. May import `stream`, `compiled`, `config`, `errors`,
`types`.
"""
