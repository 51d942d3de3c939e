"""Count the lines of Python in a tree, without blanks, comments and docstrings: `python tests/lines.py src` (make lines).

Functions whose signature and body are longer than 50 lines, docstring aside, are listed below the sum.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
LONG = 50


def code_lines(text: str) -> int:
    """How many lines of a module do something."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {n for token in tokens if token.type not in LAYOUT for n in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            lines -= docstring_lines(node)
    return len(lines)


def docstring_lines(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[int]:
    """The lines of a docstring."""
    if ast.get_docstring(node, clean=False) is None:
        return set()
    return set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))


def long_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, first line and length of every function that is longer than 50 lines from `def` to its end, docstring aside."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1 - len(docstring_lines(node))
            if length > LONG:
                yield node.name, node.lineno, length


def main(root: Path) -> None:
    """Print the lines of each room, most first, their sum, and the long functions, longest first."""
    rooms: Counter[str] = Counter()
    functions = []
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        rooms[path.relative_to(root).parts[1]] += code_lines(text)
        functions += [(length, f"{path}:{line} {name}") for name, line, length in long_functions(text)]
    for room, count in rooms.most_common():
        print(f"{count:7,}  {room}")
    print(f"{rooms.total():7,}  in all")
    print(f"\n{len(functions)} functions of more than {LONG} lines")
    for length, name in sorted(functions, reverse=True):
        print(f"{length:7,}  {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "src"))
