"""Write online_svm/metrics/sequential/interval_reach.npy, whose reaches are costly to find."""

import numpy as np

from online_svm.metrics.sequential.confidence_sequence import TABLE_FILE, make_table


def main() -> None:
    """Write the file."""
    np.save(TABLE_FILE, make_table(), allow_pickle=False)


if __name__ == "__main__":
    main()
