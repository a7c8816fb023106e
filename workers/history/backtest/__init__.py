"""Several configurations over one recorded history, each example answered before it is learned."""
