"""What `on_drift` is worth: the log loss of each policy on streams that change."""
