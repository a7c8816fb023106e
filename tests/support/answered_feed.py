"""A feed of Phishing that the real command answers, for tests of the commands around it."""

from world import flags_of

from workers.push.ingest import shuffled
from workers.push.sources import Reading, rows

SETTINGS = {"classes": "true,false", "window": "200", "refit_every": "50", "metrics_every": "40"}
FLAGS = flags_of(SETTINGS)
ROWS = 180
SEED = 3


def phishing():
    return shuffled(rows("Phishing", Reading()), SEED)[:ROWS]
