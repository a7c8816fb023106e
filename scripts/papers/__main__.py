"""`python scripts/papers`."""

import sys
from pathlib import Path

# The sources of this checkout, whatever is installed; this folder has modules with other's names.
sys.path[0] = str(Path(__file__).resolve().parents[2])

from scripts.command_line import main  # noqa: E402
from scripts.papers.command import app  # noqa: E402

if __name__ == "__main__":
    main(app, "papers")
