"""The implied posterior as a published map: banks of machines that follow the training set.

No score is mapped here, and no calibration example is used: the banks see the proper training
set alone, as the machine does. With two classes the share of machines that vote for the second is
an estimate of its probability; with more, the shares of one bank a class are divided by their
sum, a heuristic. The estimates carry no guarantee. `implied_training` trains the banks.
"""

from collections.abc import Sequence

import numpy as np

from online_svm.calibration.one_against_all import normalise_rows
from online_svm.svm.implied.packed_bank import PackedBank
from online_svm.types import Floats


def implied_probabilities(banks: Sequence[PackedBank], X: Floats) -> Floats:
    """Return the probability of each class for scaled rows, shape (m, n_classes).

    The values of a row do not depend on the other rows.
    """
    shares = np.column_stack([bank.shares(X) for bank in banks])
    return np.column_stack((1.0 - shares, shares)) if len(banks) == 1 else normalise_rows(shares)
