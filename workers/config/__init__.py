"""Settings of the service: their models, their sources, checks of URLs and addresses.

The numerics declare their own settings in `online_svm.config`; this folder inherits them. Imports
`online_svm.config` and `workers.errors`, nothing else.
"""
