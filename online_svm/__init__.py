"""Online SVM with calibrated probabilities: pure numerics, no Redis, no clock, no threads."""
