"""What `-h` prints: the options, the file formats, and the measures that were chosen with `-m`.

A measure that is one of ours speaks for itself, out of its own class.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import TYPE_CHECKING

from cranfield.compat.trec_eval.catalogue import MEASURES, NICKNAMES

if TYPE_CHECKING:
    from cranfield.compat.trec_eval.catalogue import Kind


OPTIONS = """\
cranfield trec_eval [OPTIONS] QRELS RUN

Prints what trec_eval prints, byte for byte: lines of a measure's name, a topic or "all", and a value.
RUN may be - for standard input (version 10).

  --as 9|10     be this version of trec_eval (10)
  -q            print every topic before the summary
  -n            print no summary
  -m NAME[.P]   print this measure or group of measures, with parameters P; may be repeated (official)
  -c            average over all judged topics; one that the run lacks counts as 0
  -l N          the lowest relevant grade (1)
  -M N          look at no more than N documents of a topic
  -J            take documents that are not judged out of the run first
  -N N          the number of documents in the collection, for utility's fourth weight
  -Z FILE       print deviations from the mean in standard deviations; FILE holds lines of: topic measure mean sd
  -R FORMAT     what QRELS is: qrels, qrels_jg, prefs or qrels_prefs (qrels)
  -T FORMAT     what RUN is: trec_results
  -D N[.TOPIC]  evaluate that topic only; the level N itself changes nothing
  -o            nothing; kept for old scripts
  -v            print the version
  -h            print this, and the measures chosen with -m

Exit codes: 0 fine; 1 an option or a measure that does not exist; 2 a file or a cut-off that cannot be read;
4 a topic that cannot be evaluated; 7 no topic in both files (version 9); 134 preferences that contradict each other;
255 a -Z file that cannot be read.

Files
  RUN          topic Q0 document rank score tag, and whatever follows; ordered by score, then by document id, descending
  qrels        topic iteration document grade
  qrels_jg     topic group document grade: several judges, each with qrels of their own
  prefs        topic group subgroup document level: within a subgroup the higher level is preferred
  qrels_prefs  qrels read as preferences: the second column is the group
"""
PREFERENCES = """\
Preferences fulfilled: the preferred of two documents ranks higher, or alone was returned. simp pools the judgment
groups, pair averages over pairs of documents, avgjg over groups; num counts. With _ret both documents must have been
returned, with _imp at least one; Rnonrel keeps as many nonrelevant documents as there are relevant ones. Needs -R prefs
or -R qrels_prefs."""
OWN_WORDS = {
    "runid": "The tag of the run's last line.",
    "relstring": "The grades of the first documents, one sign each: 0 to 9, > above, - not judged, . negative.",
}
TAKES = {
    "ranks": "cut-offs, sorted",
    "shares": "numbers, sorted",
    "numbers": "numbers, in this order",
    "pairs": "grade=gain",
}


def manual(chosen: list[Kind]) -> str:
    """The whole text."""
    if not chosen:
        groups = "".join(f"  {name:<10} {_wrapped(' '.join(names), 13)}\n" for name, names in NICKNAMES.items())
        every = textwrap.fill(
            " ".join(kind.name for kind in MEASURES), 116, initial_indent="  ", subsequent_indent="  "
        )
        return f"{OPTIONS}\nGroups of measures\n{groups}\nMeasures (-h -m NAME explains one)\n{every}\n"
    return OPTIONS + "".join(f"\n{_entry(kind)}\n" for kind in chosen)


def _wrapped(text: str, indent: int) -> str:
    return textwrap.fill(text, 116 - indent, subsequent_indent=" " * indent)


def _entry(kind: Kind) -> str:
    lines = [kind.name, textwrap.indent(_about(kind), "  ")]
    if kind.takes != "nothing":
        defaults = ",".join(f"{number:g}" for number in kind.defaults)
        lines.append(f"  parameters: {TAKES[kind.takes]}" + (f" ({defaults})" if defaults else ""))
    if kind.needs == "qrels_jg":
        lines.append("  averaged over judgment groups; needs -R qrels_jg")
    if kind.total == "geometric":
        lines.append("  as a geometric mean over topics, none below 0.00001")
    return "\n".join(lines)


def _about(kind: Kind) -> str:
    from cranfield.measures import REGISTRY

    if kind.needs == "prefs":
        return PREFERENCES
    if not kind.ours:
        return OWN_WORDS[kind.name]
    cls = REGISTRY[kind.ours]
    return inspect.getdoc(cls).split("\n\n")[0] + f"\n{cls.formula}"  # type: ignore[union-attr]
