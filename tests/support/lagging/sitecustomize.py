"""Let each refit of this process take effect late; Python imports this file at its start."""

from online_svm import config

config.EARLY_UNTIL = 0
