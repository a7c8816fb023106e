"""Class labels and probabilities as targets of one machine (Niaf et al.)."""
