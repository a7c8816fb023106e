"""The laboratory: benchmarks, and the papers' experiments."""
