"""Policies of `on_drift`: the log loss of each on streams that change."""
