"""Codes of reasons and of events, each with its meaning; a worker loads them without the models."""

from workers.message.event import EventCode

CODES: dict[str, str] = {
    "no_features": "Neither `x` nor `xb` was sent; an empty entry is one such.",
    "unparsable": "`x` is not JSON, or not an array or object; `p` is not a decimal number; or "
    "text that is not UTF-8 or contains NUL.",
    "not_finite": "A feature or `p` is NaN or infinite, or too large for a 64-bit float.",
    "out_of_range": "A feature is finite but beyond 1e100, or so small that it is subnormal; or "
    "`p` is not in [0, 1].",
    "dimension": "The wrong number of features, or of bytes in `xb`.",
    "unknown_feature": "A named feature that the feed does not have.",
    "missing_feature": "A feature of the feed is absent or null.",
    "label": "`y` is empty, too long, not in the declared set, or not an integer where integers "
    "are asked for.",
    "too_many_classes": "A label that the feed has not met, when it has met as many as it takes.",
    "unknown_field": "A field that no version of this schema has.",
    "duplicate_field": "A field, or a named feature, is sent twice; or both `x` and `xb` are, or "
    "both `y` and `p`.",
    "too_large": "More bytes than the entry limit, a longer id than the limit, or a large `x` of "
    "far more values than features.",
    "slice": "`s` is not a JSON object of text, names a slice that the feed does not have, or a "
    "value in it has more than 64 characters.",
    "label_entry": "An entry with `for` that has no `y`, or a field that is of an example.",
    "unknown_id": "A label for an id that is not known: no example has it, or one that is "
    "forgotten, or one that comes later.",
    "after_horizon": "A label for an example that was given up without one: its horizon had "
    "passed, or too many waited.",
    "after_window": "Another label for an example that was learned and has left the window.",
    "conflict": "A label for an example that came with `p`; or an id that waits for its label, "
    "sent with a label and other features.",
    "time": "`time` is absent where the horizon counts it, or is not milliseconds up to the year "
    "9999.",
    "answer": "`a` is no answer of a model over the declared classes, as a scorer gives it, or "
    "comes without `y`.",
    "unsupported": "Not supported yet: the field `c` (a control entry), and features that are "
    "text, true or false, an array or an object. Or a field that a setting asks for: `for` without "
    "a `horizon`, `time` where the horizon does not count it, `s` where the feed has no slices, "
    "`p` where the learner takes labels only (`svc`).",
}

JOIN_CODES: dict[str, str] = {
    "no_id": "An answer of a source has no producer's id, or repeats one: nothing is joined to it.",
    "unmatched": "A source has no answer to the id within the window.",
    "no_answer": "Every source rejected the example.",
    "label": "The sources carry different labels; the answer stands, and learns none of them.",
}
"""Reason codes of a combination."""


UNAVAILABLE_CODES: dict[str, str] = {
    "no_state": "No state was published yet, or the feed is being begun anew.",
    "stale": "The newest published state is older than the scorers may answer with.",
    "failed": "Scorers ended several times while they had this request.",
    "late": "It waited longer than the scorers let a request wait (`--max-wait`).",
}
"""Codes of requests that have no answer."""


EVENT_CODES: dict[EventCode, str] = {
    "began": "A worker has taken the feed over and begins to answer.",
    "stopped": "It stopped in order.",
    "failed": "It ended with an error, which `detail` tells.",
    "position_read_again": "It dropped what was not committed and read the position again: Redis "
    "lost its last writes, or the input changed.",
    "snapshot_not_kept": "A snapshot could not be kept; the next one follows later.",
    "snapshot_unusable": "A kept snapshot is damaged or gone; the worker replayed from another.",
    "input_uncounted": "Entries that were taken from the input unread before are not missed.",
    "input_ended": "The input has reached the last ID that Redis has.",
    "acknowledged": "Somebody has seen the alarms of the entry `alarm`.",
    "silenced": "Alarms are not posted to the webhook before `until`.",
    "note": "Somebody noted what `detail` says; the page and the report mark it.",
}
