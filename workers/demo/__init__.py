"""The demonstration: three real feeds with a worker each, a live view, and a picture at the end.

Only the command `demo` imports this folder. It may import any folder of the service below `cli`.
"""
