"""Settings of the service: their models, their sources, checks of URLs and addresses.

It inherits the predictor's settings from `online_svm.config`, and imports nothing else but
`workers.errors`.
"""
