"""The exact kernel machine over a rolling window."""
