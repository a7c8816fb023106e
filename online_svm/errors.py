"""Errors of the library.

OnlineSVMError
├── InvalidConfig      (also ValueError)   a setting that cannot work
├── InvalidExample     (also ValueError)   an example that cannot be answered; carries a reason code
├── InvalidSnapshot    (also ValueError)   bytes that are not a snapshot this version can read
└── InvalidInput       (also ValueError)   an argument of a method that cannot be used
"""


class OnlineSVMError(Exception):
    """Base class of every error the library raises on purpose."""


class InvalidConfig(OnlineSVMError, ValueError):
    """A setting, or a combination of settings, that cannot work."""


class InvalidInput(OnlineSVMError, ValueError):
    """An argument of a method that cannot be used: the message names it and says what to do."""


class InvalidSnapshot(OnlineSVMError, ValueError):
    """Bytes that are not a snapshot, or not one that this configuration can continue."""


class InvalidExample(OnlineSVMError, ValueError):
    """An example that cannot be answered. The predictor's state is unchanged.

    Attributes
    ----------
    code : str
        Machine-readable reason, one of `REJECTION_CODES`.
    reason : str
        One sentence for a person: what was wrong and what would be accepted.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


REJECTION_CODES = (
    "no_features",  # neither x nor xb
    "unparsable",  # x is not JSON, or not an array or object
    "not_finite",  # NaN or an infinity
    "out_of_range",  # a finite number too large or too small (subnormal) to compute with
    "dimension",  # wrong number of features, or of bytes
    "unknown_feature",
    "missing_feature",
    "label",  # not in the declared set, not an integer where integers are asked for, too long
    "too_many_classes",  # a new label, when there are as many as the feed takes
    "unknown_field",
    "duplicate_field",  # a field, or a named feature, sent twice
    "too_large",  # more bytes than the entry limit, or far more values than features
    "slice",  # s is not an object of text, of the feed's slices
    "label_entry",  # a label entry without a label, or with what is of an example
    "unknown_id",  # a label for an example that is not known
    "after_horizon",  # a label for an example that was given up without one
    "after_window",  # another label for a learned example that has left the window
    "conflict",  # a label for an example with a probability, or with other features
    "time",  # the time of an example is absent, or is not milliseconds
    "answer",  # a is no answer of a model over the classes, or there is no label to score it by
    "unsupported",  # a field, or a kind of feature value, that is not taken yet, or not here
)
