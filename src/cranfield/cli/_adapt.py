"""temporary"""

import inspect

from cranfield.answer import Answer, Both, as_json


def fit(f, *a, **k):
    ps = inspect.signature(f).parameters
    if any(p.kind is p.VAR_KEYWORD for p in ps.values()):
        k.pop("per_topic", None)
        return f(**k)
    return f(**{n: v for n, v in k.items() if n in ps})


class Old:
    ends_with_notes = False

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, n):
        return getattr(self.inner, n)

    @property
    def scores(self):
        return getattr(self.inner, "scores", None)

    def basis(self):
        from cranfield.scores import conventions_in_words

        name = type(self.inner).__name__
        if name == "Scores":
            return [f"conventions: {conventions_in_words(self.inner.conventions)}"]
        if name == "Bounds":
            return [f"assumption: {self.inner.assumption}"]
        if name == "Slices":
            return [f"conventions: {conventions_in_words(self.inner.scores.conventions)}"]
        if name in ("Leaderboard",):
            return [self.inner.how()]
        if name in ("Gate",):
            return [self.inner.how()]
        if name == "Comparison":
            return []
        return []

    def notes(self, shell=False):
        name = type(self.inner).__name__
        if not hasattr(self.inner, "notes"):
            return []
        if name in ("Explanation", "Views"):
            return []
        n = fit(self.inner.notes, shell=shell) if callable(self.inner.notes) else self.inner.notes
        if name == "Comparison":
            n = self.inner.scores.notes(shell=True)
        if name in ("Bounds", "Slices"):
            n = [*n, *self.inner.scores.notes(shell=True)] if name == "Slices" else self.inner.scores.notes(shell=True)
        return n

    def to_text(self, per_topic, digits, limit=None, style=None, **k):
        t = fit(self.inner.to_text, per_topic=per_topic, digits=digits, limit=limit, style=style, **k)
        return "\n\n".join([t, *self.basis()])

    def to_markdown(self, per_topic, digits, every=False):
        return fit(self.inner.to_markdown, per_topic=per_topic, digits=digits, every=every)

    def to_html(self, per_topic, digits, every=False, page=True):
        return fit(self.inner.to_html, page=page)

    def to_json(self, per_topic, digits):
        if hasattr(self.inner, "to_json"):
            return fit(self.inner.to_json, per_topic=per_topic, digits=digits)
        return as_json(fit(self.inner.to_dict, per_topic=per_topic, digits=digits))

    def _sep(self, d, per_topic, digits):
        if not hasattr(self.inner, "to_csv"):
            head = ("figure", "value") if type(self.inner).__name__ == "CollectionStats" else ("what", "change", "id")
            return "\n".join(d.join(map(str, row)) for row in [head, *self.inner.rows()])
        return fit(self.inner.to_csv, per_topic=per_topic, digits=digits, delimiter=d)

    def to_csv(self, per_topic, digits):
        return self._sep(",", per_topic, digits)

    def to_tsv(self, per_topic, digits):
        return self._sep("\t", per_topic, digits)


class Listed(Old):
    def to_text(self, per_topic, digits, limit=None, style=None, **k):
        import cranfield.check as check
        from cranfield.pool import estimate, stop, thin

        first = type(self.inner[0]).__name__ if self.inner else "Finding"
        if first == "Finding":
            return check.render(self.inner)
        if first == "Estimate":
            return estimate.table(self.inner)
        if first == "Thin":
            return thin.table(self.inner, limit)
        return stop.table(self.inner, getattr(self, "seconds", None), getattr(self, "price", None))

    def to_json(self, per_topic, digits):
        import cranfield.check as check
        from cranfield.pool import estimate

        first = type(self.inner[0]).__name__ if self.inner else "Finding"
        if first == "Finding":
            return as_json(check.to_dict(self.inner))
        if first == "Estimate":
            return as_json(estimate.to_dict(self.inner))
        return as_json([e.to_dict() for e in self.inner])


class Pair(Old):
    def to_text(self, *a, **k):
        i = self.inner
        t = [adapted(i.first).to_text(*a, **k)] if i.first is not None else []
        s = adapted(i.second).to_text(*a, **k)
        return "\n\n".join([*t, f"{i.lead}\n{s}" if i.lead else s])

    def to_json(self, *a):
        i = self.inner
        return as_json({**({} if i.first is None else i.first.to_dict()), i.key: i.second.to_dict()})

    def to_csv(self, *a):
        return adapted(self.inner.first or self.inner.second).to_csv(*a)

    def to_tsv(self, *a):
        return adapted(self.inner.first or self.inner.second).to_tsv(*a)

    def notes(self, shell=False):
        i = self.inner
        return [*([] if i.first is None else adapted(i.first).notes(shell)), *adapted(i.second).notes(shell)]


def adapted(a):
    if isinstance(a, Both):
        return Pair(a)
    if isinstance(a, Old):
        return a
    if isinstance(a, Answer):
        if not hasattr(a, "basis"):
            type(a).basis = lambda self: []
            type(a).ends_with_notes = False
        return a
    return Listed(a) if isinstance(a, list) else Old(a)
