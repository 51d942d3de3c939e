"""Count the lines of Python in a tree, without blanks, comments and docstrings: `python tests/lines.py src`."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """How many lines of a module do something."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {n for token in tokens if token.type not in LAYOUT for n in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def main(root: Path) -> None:
    """Print the lines of each room, most first, and their sum."""
    rooms: Counter[str] = Counter()
    for path in sorted(root.rglob("*.py")):
        rooms[path.relative_to(root).parts[1]] += code_lines(path.read_text())
    for room, count in rooms.most_common():
        print(f"{count:7,}  {room}")
    print(f"{rooms.total():7,}  in all")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "src"))
