"""The compact form of an answer: the setting `payload = "compact"`."""
