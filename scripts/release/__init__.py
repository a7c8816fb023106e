"""What a release is made of, and the checks it has to pass."""
