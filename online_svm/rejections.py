"""The cases in which an example is rejected, and the sentence that explains each.

A feed stores the case and its parameters, in the form of `InvalidExample.about`. Their names are
bytes of answers and change only when `SEMANTICS` is raised. A sentence may be improved at any time.
"""

import json
from collections.abc import Mapping
from typing import Any

CASES: dict[str, dict[str, str]] = {
    "no_features": {"no_x": "the entry has neither x nor xb"},
    "unparsable": {
        "x_not_json": "x is not JSON",
        "x_no_collection": "x is not a JSON array or object",
        "x_too_deep": "x is nested too deeply",
        "x_of_type": "x is a {type}, not an array or object",
        "x_no_row": "x must be one row of numbers",
        "x_without_names": 'features is "infer": send named features',
        "x_with_names": "this feed takes arrays of {features} numbers, not names",
        "feature_no_number": "feature {feature!r} is not a number",
        "name_length": "a feature name has 1 to {most} characters",
        "name_with_nul": "a feature name contains NUL",
        "p_no_decimal": "p is not a decimal number of at most {most} bytes",
        "p_no_number": "p is not a number",
        "score_of_classes": "score is neither a number, for two classes, nor one number for each "
        "class: {declared}",
        "score_not_json": "score is not JSON",
        "score_version_of_type": "the version of a score is not an integer or a text of at most "
        "{most} characters",
        "field_with_nul": "{field} contains NUL",
        "field_not_utf8": "{field} is not UTF-8; send its text in UTF-8",
    },
    "not_finite": {
        "feature_nan": "feature {feature!r} is NaN; send a finite number",
        "feature_infinite": "feature {feature!r} is infinite; send a finite number",
        "p_not_finite": "p is not finite; send a number from 0 to 1",
        "score_not_finite": "score is not finite; send a number, or null for a missing score",
    },
    "out_of_range": {
        "feature_out_of_range": "feature {feature!r} is {value!r}; send 0 or a size from 1e-307 to "
        "1e100",
        "p_out_of_range": "p is {p!r}; send a number from 0 to 1",
        "score_out_of_range": "score is {p!r}; send a probability from 0 to 1",
        "score_of_zeros": "score is 0 for each class; send probabilities, or null for a missing "
        "score",
    },
    "dimension": {
        "features_other": "x has {found} features, this feed takes {features}",
        "features_too_many": "x has {found} features, the limit is {most}",
        "features_none": "x is empty; send at least one feature",
        "names_none": "x has no feature whose name can be used; send at least one",
        "array_for_names": "this feed takes named features, not arrays",
        "xb_length": "xb has {bytes} bytes, not a multiple of 8",
    },
    "unknown_feature": {
        "feature_unknown": "feature {feature!r} is unknown",
        "feature_of_score": "feature {feature!r} has a name of the score's columns; rename it",
        "name_no_text": "feature names are text",
    },
    "missing_feature": {
        "feature_missing": "feature {feature!r} is missing; send a number, or set missing to "
        '"mean"',
    },
    "label": {
        "label_of_type": "a label is text or an integer, not {type}",
        "label_no_integer": "label {label!r} is not an integer of 18 digits or less",
        "label_length": "a label has 1 to {most} characters",
        "label_undeclared": "label {label!r} is not declared; declared: {declared}; name all "
        "labels in classes=",
        "y_bytes": "y has more than {most} bytes",
        "y_characters": "y has more than {most} characters",
    },
    "too_many_classes": {
        "label_too_many": "label {label!r} is not among the first {most} of this feed, its limit"
    },
    "unknown_field": {
        "field_unknown": "field {field!r}; known: {known}",
    },
    "duplicate_field": {
        "field_twice": "field {field!r} is sent twice",
        "x_and_xb": "both x and xb are sent; send one",
        "y_and_p": "both y and p are sent; send one",
        "feature_twice": "a feature name is in x twice",
        "slice_twice": "a name is in s twice",
    },
    "too_large": {
        "entry_bytes": "the entry has {bytes} bytes, the limit is {most}",
        "x_values": "x holds more than {most} names, values, arrays and objects",
        "id_characters": "{field} has more than {most} characters",
    },
    "slice": {
        "s_not_json": "s is not JSON",
        "s_no_object": "s is not an object of text values",
        "s_bytes": "s has more than {most} bytes",
        "slice_unknown": "s: the feed has no slice {slice!r}; it has {known}",
        "slice_no_text": "s: {slice!r} is not text",
        "slice_characters": "s: {slice!r} has more than {most} characters",
    },
    "label_entry": {
        "label_with_features": "a label entry has for, y and id; {field} is of an example",
        "label_without_y": "a label entry needs y, the label",
    },
    "unknown_id": {
        "id_unknown": "no example with id {id!r} waits for a label: none came, or too long ago, or "
        "it comes later; send a label after its example"
    },
    "after_horizon": {
        "id_given_up": "the example with id {id!r} was given up without a label before; a longer "
        "horizon waits longer"
    },
    "after_window": {
        "id_left_window": "the example with id {id!r} has left the window: another label would "
        "change nothing"
    },
    "conflict": {
        "id_with_probability": "the example with id {id!r} came with a probability in the place of "
        "a label",
        "id_with_other_features": "the example with id {id!r} waits for its label and had other "
        "features",
    },
    "time": {
        "time_absent": "time is absent; the horizon of this feed counts it",
        "time_no_milliseconds": "time is not milliseconds from 0 to {most}",
    },
    "unsupported": {
        "c_planned": "field 'c', a control entry, is not supported yet; known: {known}",
        "for_without_horizon": "field 'for', the label of an earlier id, needs a horizon; set "
        "horizon to how long a label may take: so many further examples, as 500, or a time, as 30m",
        "time_not_counted": "field 'time', the time of an example, needs a horizon that counts it; "
        "set horizon to a time, as 30m",
        "score_without_scores": "score is sent, but the feed takes none; set scores to what it is: "
        "probability or margin",
        "s_without_slices": "s is sent, but the feed has no slices; set slices",
        "p_of_other_learner": "p is sent, but the learner takes labels only; set learner to psvm",
        "text_for_number": "feature {feature!r} is text, which is not supported yet; send a number",
        "boolean_for_number": "feature {feature!r} is true or false, which is not supported yet; "
        "send a number",
        "array_for_number": "feature {feature!r} is an array, which is not supported yet; send a "
        "number",
        "object_for_number": "feature {feature!r} is an object, which is not supported yet; send a "
        "number",
        "value_array": "a value is an array; send a number, text, boolean or null",
        "value_object": "a value is an object; send a number, text, boolean or null",
        "value_of_type": "a value is a {type}; send a number, text, boolean or null",
        "feature_value_array": "feature {feature!r}: a value is an array; send a number, text, "
        "boolean or null",
        "feature_value_object": "feature {feature!r}: a value is an object; send a number, text, "
        "boolean or null",
        "feature_value_of_type": "feature {feature!r}: a value is a {type}; send a number, text, "
        "boolean or null",
    },
}
"""Sentence of each case, grouped by reason code; parameters stand in braces."""

SENTENCES = {case: text for cases in CASES.values() for case, text in cases.items()}
CODES = {case: code for code, cases in CASES.items() for case in cases}


def sentence(text: str, given: Mapping[str, Any]) -> str:
    """Return a sentence with its parameters filled in; list items are separated by commas."""
    lists = {name: ", ".join(each) for name, each in given.items() if isinstance(each, list)}
    return text.format(**{**given, **lists})


def reason_of(about: object) -> str:
    """Return the sentence of a stored case, or the JSON of any other value.

    `about`: an `InvalidExample.about`, or any other JSON value.
    """
    try:
        given: dict[str, Any] = dict(about)  # type: ignore[call-overload]  # TypeError if no mapping
        return sentence(SENTENCES[given["case"]], given)
    except (KeyError, TypeError, ValueError):
        return json.dumps(about)[:400]
