"""Long runs and many feeds."""
