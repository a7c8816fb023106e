"""Settings: what they are, where each value comes from, and how it is explained."""
