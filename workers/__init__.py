"""The service around OnlinePredictor: all input and output, no numerics."""
