"""Mutations: where they are planted, and that each changes the code of its line alone."""

import ast

from scripts.mutate import FOLDERS, ROOT, drawn, sites

SOURCE = '''
LIMIT = 2


def grow(x, seen):
    """Return 1 more."""
    if x < LIMIT and seen:
        seen.append(x + 1)
    return x
'''


def test_each_mutation_changes_one_place_in_a_function():
    made = set()
    for number in range(len(sites(ast.parse(SOURCE)))):
        module = ast.parse(SOURCE)
        sites(module)[number].apply()
        before = ast.unparse(ast.parse(SOURCE)).splitlines()
        (change,) = set(ast.unparse(module).splitlines()) - set(before)
        made.add(change.strip())
    assert made == {
        "if x <= LIMIT and seen:", "if x < LIMIT or seen:", "seen.append(x - 1)",
        "seen.append(x + 2)", "pass", "return None",
    }  # fmt: skip


def test_the_seed_draws_places_of_each_folder():
    places = drawn(ROOT, 9, seed=3)
    assert places == drawn(ROOT, 9, seed=3) != drawn(ROOT, 9, seed=4)
    assert [file.rpartition("/")[0] for file, _ in places] == [*FOLDERS] * 3
