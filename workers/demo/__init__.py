"""The demonstration: three real feeds, a worker each, a live view, and a picture at the end.

Nothing else imports this folder but its command. Imports any folder of the service below `cli`.
"""
