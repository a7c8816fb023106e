"""The service around OnlinePredictor: all input and output, no numerics.

Each folder is one concept and imports downwards only; `tests/test_imports.py` has the order. The
modules here serve every folder. Imports `online_svm`, never `scripts` or `tests`.
"""
