"""`python scripts/bench`."""

import sys
from pathlib import Path

# The sources of this checkout, whatever is installed; this folder has modules with other's names.
sys.path[0] = str(Path(__file__).resolve().parents[2])

from scripts.bench.commands import MODULES, app  # noqa: E402
from scripts.command_line import main  # noqa: E402

if __name__ == "__main__":
    main(app(*[name for name in sys.argv[1:2] if name in MODULES]), "bench")
