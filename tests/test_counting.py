"""What make lines and make coverage count."""

from __future__ import annotations

from covered import Count, by_room, missing
from lines import LONG, code_lines, long_functions

MODULE = '''"""A docstring
of two lines."""

# a comment
x = 1  # with a comment
TEXT = """two
lines"""


def function(
    a,
):
    """Another docstring."""

    return a
'''


def test_lines_of_code_are_those_that_do_something():
    assert code_lines(MODULE) == 7


def test_a_function_is_as_long_as_its_signature_and_its_body():
    body = "    x = 1\n" * (LONG - 1)
    assert list(long_functions(f"def f():\n{body}")) == []
    assert list(long_functions(f"y = 2\n@cache\ndef f(\n    a,\n):\n    '''Says\n    much.'''\n{body}")) == [
        ("f", 3, LONG + 2)
    ]


def facts(lines: int, statements: int, taken: int, branches: int, **missed: list) -> dict:
    keys = ("covered_lines", "num_statements", "covered_branches", "num_branches")
    summary = dict(zip(keys, (lines, statements, taken, branches), strict=True))
    return {"summary": summary, "missing_lines": [], "missing_branches": [], **missed}


def test_coverage_is_summed_by_room_and_branches_apart_from_statements():
    files = {"stats/a.py": facts(8, 10, 1, 2), "stats/b.py": facts(10, 10, 2, 2), "hits.py": facts(3, 3, 0, 0)}
    rooms = by_room(files)
    assert rooms["stats"] == (Count(18, 20), Count(3, 4))
    assert [count.percent for count in rooms["stats"]] == [90, 75]
    assert [count.percent for count in rooms["hits"]] == [100, 100]


def test_what_was_missed_is_named_by_file_and_line():
    files = {
        "stats/a.py": facts(8, 10, 1, 2, missing_lines=[3, 4], missing_branches=[[2, 3], [5, -1]]),
        "stats/b.py": facts(10, 10, 2, 2),
        "hits.py": facts(2, 3, 0, 0, missing_lines=[1]),
    }
    assert missing(files, ["stats"]) == ["stats/a.py: lines 3 4; branches 2→3 5→end"]
