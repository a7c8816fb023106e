"""The service around OnlinePredictor: all input and output, no numerics.

Each folder is one concept and imports only lower ones; `tests/test_imports.py` has the order. All
folders may import the modules here. It imports `online_svm`, never `scripts` or `tests`.
"""
