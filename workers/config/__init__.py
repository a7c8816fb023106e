"""Settings: their definitions, the origin of each value, and messages about wrong ones."""
