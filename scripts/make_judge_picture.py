"""Draw docs/images/judge.svg with what the first blocks of docs/how-to/judge.md compute."""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt

from scripts.generated_page import OTHER_COLOUR, OURS_COLOUR, STYLE

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "judge.md"
TARGET = PAGE.parents[1] / "images" / "judge.svg"


def computed() -> dict[str, Any]:
    """Run the page up to its picture, in an empty folder; return the names that it makes."""
    first = PAGE.read_text("utf-8").partition("![")[0]
    data, shown = re.findall(r"```python\n(.*?)```", first, re.DOTALL)
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("judged.py").write_text(data, "utf-8")
        exec(shown, names)  # noqa: S102  # our own page
        os.chdir(PAGE.parent)
    return names


def main() -> int:
    """Write the picture; its description has the calibrated probabilities of the page."""
    page = computed()
    with matplotlib.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(8, 2.9), sharey=True)
        for axis, (decided, (points, intervals)) in zip(axes, page["after"].items(), strict=True):
            axis.plot([0, 1], [0, 1], color="#cbd5e1", linewidth=1)
            axis.hlines(page["shares"], *intervals.T, color=OURS_COLOUR, alpha=0.35, linewidth=3)
            axis.plot(page["levels"], page["shares"], "o", color=OTHER_COLOUR, label="as said")
            axis.plot(points, page["shares"], "o", color=OURS_COLOUR, label="calibrated")
            axis.set(title=f"{decided:,} decisions", xlabel="probability", aspect="equal")
        axes[0].set(ylabel="right, of the later cases")
        axes[0].legend(frameon=False, loc=(0.0, 0.55))
        calibrated = [points for points, _ in page["after"].values()]
        descriptions = [" ".join(f"{p:.2f}" for p in points) for points in calibrated]
        named = {"Date": None, "Description": "; ".join(descriptions)}
        figure.savefig(TARGET, metadata=named, bbox_inches="tight")
    return 0


if __name__ == "__main__":
    sys.exit(main())
