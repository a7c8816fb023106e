"""Linear machines on explicit feature maps."""
