"""Refits that take effect as late as those of feeds with 2,000 examples, from the first one on."""

import os
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from online_svm import config

START = Path(__file__).with_name("lagging")
"""Folder of a `sitecustomize`, by which a started Python sets the same."""


@contextmanager
def late_refits(are_late=True):
    """Let refits take effect `refit_every` - 1 examples late, here and in processes started."""
    if not are_late:
        yield
        return
    path = os.pathsep.join(filter(None, (str(START), os.environ.get("PYTHONPATH"))))
    with patch.object(config, "EARLY_UNTIL", 0), patch.dict(os.environ, PYTHONPATH=path):
        yield
