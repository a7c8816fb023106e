"""docs/python.md has each public name, with shapes, errors and an example."""

import inspect
import re

import pytest

import online_svm
from online_svm import river
from scripts import make_python_docs

MEMBERS = {name: member for _, name, member in make_python_docs.members()}
CLASSES = {name: member for name, member in MEMBERS.items() if isinstance(member, type)}


def test_the_page_is_up_to_date_and_has_each_public_name():
    assert make_python_docs.main(["--check"]) == 0, "python scripts/make_python_docs.py"
    public = {f"online_svm.{name}" for name in online_svm.__all__}
    own = {
        f"online_svm.river.{name}" for name, member in vars(river).items()
        if getattr(member, "__module__", "") == river.__name__ and not name.startswith("_")
    }  # fmt: skip
    assert set(MEMBERS) == public | own


@pytest.mark.parametrize("name", MEMBERS)
def test_each_name_has_an_example(name):
    assert "\n>>> " in inspect.getdoc(MEMBERS[name])


@pytest.mark.parametrize("name", CLASSES)
def test_each_parameter_of_a_class_is_described(name):
    member, text = CLASSES[name], inspect.getdoc(CLASSES[name])
    if issubclass(member, Exception | online_svm.PredictorConfig):
        return
    for parameter in inspect.signature(member).parameters:
        assert re.search(rf"\b{parameter}\b", text), parameter


@pytest.mark.parametrize("name", CLASSES)
def test_each_method_is_described(name):
    for called, method in make_python_docs.methods(CLASSES[name]):
        assert inspect.getdoc(method), called
