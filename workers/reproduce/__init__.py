"""The papers' experiments: pure functions that return what was printed beside what is measured."""
