"""`python scripts/bench`."""

import sys
from pathlib import Path

# Import this checkout, not an installed package; this folder has modules with names of others.
sys.path[0] = str(Path(__file__).resolve().parents[2])

from scripts.bench.commands import app  # noqa: E402
from scripts.command_line import main  # noqa: E402
from workers.python_process import shut_out_current_directory  # noqa: E402

if __name__ == "__main__":
    shut_out_current_directory()
    main(app(sys.argv[1:]), "bench")
