"""Write online_svm/metrics/sequential/interval_reach.npy, whose reaches are costly to find."""

import numpy as np

from online_svm.metrics.sequential.interval_reach import TABLE, make_table


def main() -> None:
    """Write the file anew."""
    np.save(TABLE, make_table(), allow_pickle=False)


if __name__ == "__main__":
    main()
