"""A collection's documents by id: arguments are the collection, where the index lies, and how many documents are read.

Prints the seconds of the processor to open the shelf, which makes the index if there is none, and the milliseconds that one
document takes, of many read by ids drawn by lot: median, and the slowest but one in a hundred.
"""

from __future__ import annotations

import json
import random
import sys
from time import perf_counter, process_time

from cranfield.formats.document_index import open_shelf


def main(collection: str, where: str, number: str) -> None:
    start = process_time()
    shelf = open_shelf(collection, where)
    opening = process_time() - start
    drawn = random.Random(0).choices(range(len(shelf)), k=int(number))
    taken = []
    for i in drawn:
        before = perf_counter()
        document = shelf.get(f"d{i}")
        taken.append(1e3 * (perf_counter() - before))
        if document is None or document.id != f"d{i}":
            raise SystemExit(f"d{i}: expected the document, found {document!r}")
    taken.sort()
    print(json.dumps({"opening": opening, "median": taken[len(taken) // 2], "late": taken[int(0.99 * len(taken))]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
