"""Two systems in Python for the golden commands: documents by how many words they share with the query, and a failure."""

from __future__ import annotations


class Shared:
    def index(self, documents):
        self.words = {each.id: set(f"{each.title} {each.text}".lower().split()) for each in documents}

    def search(self, text, k):
        wanted = set(text.lower().split())
        counts = {name: len(wanted & words) for name, words in self.words.items()}
        return sorted(((name, count) for name, count in counts.items() if count), key=lambda row: (-row[1], row[0]))[:k]


def fails(text, k):
    raise ValueError("no answer today")
