"""Make a release, and run the checks it has to pass."""
