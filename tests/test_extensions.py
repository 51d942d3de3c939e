"""A member of a registry is one class in one place: whoever defines one finds it everywhere else by its own words.

Each test defines a throw-away member, looks for it in all places that show such members, and takes it back. Members that
are found by lying in a folder lie in that of a copy of the package.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cranfield import Measure, Scores, compare, evaluate, fuse, pool, read_run
from cranfield import __file__ as package_file
from cranfield.errors import ConventionError, DataError
from cranfield.fuse.method import METHODS, OfScores
from cranfield.gate import gate
from cranfield.gate.question import QUESTIONS, MaxDrop
from cranfield.measures import REGISTRY, Real
from cranfield.online import Keys, credit, interleave
from cranfield.online.design import design as planned
from cranfield.online.design import proportion
from cranfield.online.interleave.method import METHODS as INTERLEAVINGS
from cranfield.online.interleave.method import Drawn, Evidence, Method
from cranfield.online.users import USERS, User
from cranfield.parameters import Whole
from cranfield.pool.strategies.fixed import ByPriority
from cranfield.pool.strategy import STRATEGIES
from cranfield.registry import Registry
from cranfield.stats.agreement import COEFFICIENTS, Fleiss, Labels, agreement
from cranfield.stats.consensus.majority import Majority
from cranfield.stats.consensus.method import METHODS as CONSENSUS
from cranfield.stats.correction import CORRECTIONS, Correction
from cranfield.stats.many import Pairwise, TestOfMany
from cranfield.stats.method import SignificanceTest
from cranfield.stats.sequential import SCHEDULES, SPENDINGS, AtLooks, Pocock, spending
from cranfield.stats.test import Figures
from cranfield.stats.testing import TESTS, TESTS_OF_MANY, Test
from cranfield.systems import SYSTEMS, System
from shell import EXAMPLES, cranfield, generator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VALUES = np.random.default_rng(3).normal([0.3, 0.5, 0.8], 0.2, (12, 3))


@contextmanager
def restored(*registries: dict | Registry) -> Iterator[None]:
    """Registries as they were, whatever happens inside."""
    before = [dict(registry) for registry in registries]  # which also loads all their members
    try:
        yield
    finally:
        for registry, members in zip(registries, before, strict=True):
            inside = registry._members if isinstance(registry, Registry) else registry
            inside.clear()
            inside.update(members)


def scores() -> Scores:
    return Scores.from_table(VALUES, ["one", "other", "third"], measure="AP")


def test_a_test_of_two_samples_is_one_class():
    with restored(TESTS, SignificanceTest.everywhere):

        class Weather(Test):
            """Was it a sunny day for the second sample? A name for an example."""

            name = "weather"
            title = "test of the weather forecast"
            short = "weather forecast"
            reference = "nobody (2026)"
            aliases = ("sunshine",)
            p_from = "formula"
            interval = "sunny"

            def compute(self, a, b, question):
                mean = (b - a).mean(axis=1)
                return Figures(np.full(len(a), 0.03125), mean, mean - 1, mean + 1)

        found = compare(scores(), tests="sunshine weather t", correction="none", interval="sunny")
        assert list(TESTS).index("weather") < list(TESTS).index("mcnemar")  # among those of any pairs
        assert "weather forecast p = 0.031" in found.sentences()[0]
        assert "weather forecast  0.031  formula" in found.to_text()
        assert "test: weather forecast" in found.to_text()
        pair = found.to_dict()["pairs"][0]
        assert pair["test"] == "weather"
        assert pair["outcomes"]["weather"]["p"] == 0.03125
        assert (pair["low"], pair["high"]) == (pair["difference"] - 1, pair["difference"] + 1)
        for help_of in (["compare", "--help"], ["leaderboard", "--help"], ["stability", "--help"]):
            assert "weather" in cranfield(*help_of).out
        assert "sunny" in cranfield("compare", "--help").out
        assert "Was it a sunny day" in cranfield("tests").out
        assert "test of the weather forecast" in cranfield("tests", "sunshine").out
        assert "weather" in [page["name"] for page in json.loads(cranfield("tests", "--format", "json").out)]
        assert "\n### weather\n\ntest of the weather forecast. Was it" in generator("generate_tests").page()
    assert "weather" not in TESTS


def test_a_test_of_many_groups_is_one_class():
    with restored(TESTS_OF_MANY, SignificanceTest.everywhere):

        class Moon(TestOfMany):
            """Every pair, by the phase of the moon. A name for an example."""

            name = "moon"
            title = "test of the moon"
            reference = "nobody (2026)"
            p_from = "formula"

            def compute(self, table, level):
                means = table.mean(axis=0)
                square = np.full((len(means), len(means)), 0.03125)
                apart = means[None] - means[:, None]
                return Pairwise(self.name, means, apart, apart, square, apart - 1, apart + 1, 0.5, level)

        found = compare(scores(), tests="moon")
        assert "test of the moon p = 0.031" in found.sentences()[0]
        assert "test of the moon, AP: critical difference 0.5, smallest p of a pair = 0.031" in found.to_text()
        assert found.to_dict()["many"]["AP"]["moon"]["critical"] == 0.5
        for command in ("compare", "leaderboard", "stability"):
            assert "moon" in cranfield(command, "--help").out
        assert "by the phase of the moon" in cranfield("tests", "moon").out
        assert "\n### moon\n" in generator("generate_tests").page()


def test_a_correction_is_one_class():
    with restored(CORRECTIONS):

        class Doubled(Correction):
            """Twice every p-value, however many there are. A name for an example."""

            name = "doubled"
            title = "Doubling"
            short = "doubled"
            reference = "nobody (2026)"
            aliases = ("twice",)
            controls = "family-wise error"

            def corrected(self, p):
                return 2 * p

        found = compare(scores(), correction="twice", resamples=30)
        assert found.pairs[0].corrected == min(1.0, 2 * found.pairs[0].p)
        assert ", doubled " in found.sentences()[0]
        assert "correction: doubled over 3 p-values" in found.to_text()
        assert "doubled" in found.to_text().splitlines()[2].split()
        assert found.to_dict()["correction"] == "doubled"
        assert [caution.code for caution in found.cautions if caution.code == "coarse"]  # a bound of any false alarm
        for command in ("compare", "leaderboard"):
            assert "doubled (twice)" in " ".join(cranfield(command, "--help").out.split())
        assert "Twice every p-value" in cranfield("corrections").out
        assert "Doubling" in cranfield("corrections", "twice").out
        assert "\n### doubled\n\nDoubling. Twice" in generator("generate_tests").page()


def test_a_spending_function_and_a_method_of_looking_are_one_class_each():
    with restored(SPENDINGS), restored(SCHEDULES):

        class AllAtOnce(Pocock):
            """Spends half at once, the rest with time. A name for an example."""

            name = "half"
            title = "half at once"

            def spent(self, share, tail):
                return tail * (share > 0) * (1 + share) / 2

        class Monthly(AtLooks):
            """A look a month. A name for an example."""

            name = "monthly"
            title = "monthly looks"

        plan = planned(proportion(0.3), effect=0.02, methods="monthly(looks=3, by=half)")
        assert plan.methods[0].needed > planned(proportion(0.3), effect=0.02, methods="fixed").methods[0].needed
        with pytest.raises(DataError, match="no spending function 'all'; there are .*half"):
            spending("all")
        with pytest.raises(ConventionError, match="no method 'daily'; there are .*monthly"):
            planned(proportion(0.3), effect=0.02, methods="daily")


def test_a_coefficient_of_agreement_is_one_class():
    with restored(COEFFICIENTS):

        class Handshake(Fleiss):
            """Fleiss' kappa, shaken by hand. A name for an example."""

            name = "handshake"
            title = "shaken kappa"
            aliases = ("shake",)

        labels = Labels.of_table([[0, 1, 1], [0, 1, 0]])
        assert agreement(labels, "shake").value == agreement(labels, "fleiss").value
        with pytest.raises(DataError, match="no coefficient 'nod'; there are raw, .*handshake"):
            agreement(labels, "nod")
    assert "handshake" not in COEFFICIENTS


def test_a_consensus_method_is_one_class():
    with restored(CONSENSUS):

        class Dictator(Majority):
            """The vote, said aloud. A name for an example."""

            name = "dictator"
            title = "dictator's vote"

        verdict = CONSENSUS.named("Dictator").decide(Labels.of_table([[1], [1], [0]]))
        assert (verdict.method, verdict.labels) == ("dictator", {0: 1})
        with pytest.raises(ConventionError, match="no consensus method 'coin'; there are .*dictator"):
            CONSENSUS.named("coin")
    assert "dictator" not in CONSENSUS


def test_a_question_of_the_gate_is_one_class():
    with restored(QUESTIONS):

        class Halved(MaxDrop):
            """Is it worse by more than half of what is allowed?"""

            name = "half-drop"
            title = "worse by half?"
            shows = "the mean fell by more than half of what is allowed"

            def allowed(self, max_drop):
                return max_drop / 2

        judged = {str(i): {"a": 1} for i in range(8)}
        found = gate(judged, judged, judged, "RR", question="half-drop", max_drop=0.1)
        assert (found.question, found.verdicts[0].max_drop) == ("half-drop", 0.05)
        assert "more than half of what is allowed" in found.to_text()
        assert "half-drop" in cranfield("gate", "--help").out
    assert "half-drop" not in QUESTIONS


def test_a_pooling_strategy_is_one_class():
    with restored(STRATEGIES):

        class Alphabet(ByPriority):
            """Documents by the alphabet, whatever the runs say. A name for an example."""

            name = "alphabet"
            reference = "nobody (2026)"
            start_at = Whole(0, "how many letters are passed over", low=0)

            def priority(self, candidates, rng):
                return -np.argsort(np.argsort(candidates.documents)).astype(float)

        first, *_ = pool({"a": {"1": {"y": 3.0, "x": 2.0, "z": 1.0}}}, strategy="Alphabet", next=1)
        assert first.document == "x"
        assert "Documents by the alphabet" in cranfield("pool", "strategies").out
        assert "letters are passed over" in cranfield("pool", "strategies").out
        listed = json.loads(cranfield("pool", "strategies", "--format", "json").out)
        assert "alphabet" in [each["name"] for each in listed]
    assert "alphabet" not in STRATEGIES


def test_a_fusion_method_is_one_class():
    with restored(METHODS):

        class Loudest(OfScores):
            """The sum of all scores, squared. A name for an example."""

            name = "loudest"
            formula = "(Σ s)²"
            reference = "nobody (2026)"

            def combine(self, votes):
                return votes.total() ** 2

        fused = fuse([{"1": {"x": 3.0, "y": 1.0}}, {"1": {"x": 3.0, "y": 2.0}}], "Loudest", norm="none")
        assert fused.to_dict() == {"1": {"x": 36.0, "y": 9.0}}
        assert "loudest" in cranfield("fuse", "--help").out
        assert "The sum of all scores, squared" in cranfield("fuse", "--list").out
        listed = json.loads(cranfield("fuse", "--list", "--format", "json").out)
        assert "loudest" in [each["usage"] for each in listed["methods"]]
        assert "loudest" in generator("generate_cli").page()


def test_a_method_of_interleaving_is_one_class():
    with restored(INTERLEAVINGS):

        class Alternate(Method):
            """By turns, without a coin. A name for an example."""

            name = "alternate"
            letter = "~"
            formula = "clicks on odd ranks, clicks on even ranks"
            reference = "nobody (2026)"

            def draw(self, lists, k, coin):
                documents = tuple(dict.fromkeys(one for pair in zip(*lists, strict=False) for one in pair))[:k]
                return Drawn(documents, Evidence(((),) * len(documents)))

            def credit(self, evidence, systems, clicks):
                return [sum(worth for rank, worth in clicks.items() if rank % 2 == side) for side in range(2)]

        keys = Keys.new()
        shown = interleave([["a", "b"], ["c", "d"]], 3, Random(1), "Alternate")
        assert (shown.documents, shown.teams) == (("a", "c", "b"), ("A", "B", "A"))
        assert credit(shown.seal(keys), [2], keys=keys).winner == "B"
        assert "By turns, without a coin" in " ".join(cranfield("online", "methods").out.split())
        assert "clicks on even ranks" in cranfield("online", "methods", "alternate").out
        assert "alternate" in cranfield("online", "interleave", "--help").out
        assert "alternate" in generator("generate_cli").page()
    assert "alternate" not in INTERLEAVINGS


def test_a_model_of_users_is_one_class(tmp_path):
    with restored(USERS):

        class Top(User):
            """Clicks on whatever stands first. A name for an example."""

            name = "top"
            formula = "rank 1"
            reference = "nobody (2026)"

            def clicks(self, gains, rng):
                return np.arange(gains.shape[1]) == np.zeros(len(gains))[:, None]

        files = [EXAMPLES / name for name in ("qrels.txt", "bm25.run", "dense.run")]
        typed = [
            "online",
            "simulate",
            *files,
            "-o",
            tmp_path / "log",
            "--users",
            "top",
            "--units",
            "5",
            "--format",
            "json",
        ]
        told = json.loads(cranfield(*typed).out)
        assert told["events"]["click"] == told["events"]["impression"]
        assert "Clicks on whatever stands first" in " ".join(cranfield("online", "users").out.split())
        assert "rank 1" in cranfield("online", "users", "top").out
        for verb in ("simulate", "bridge"):
            assert re.search(r"\btop\b", cranfield("online", verb, "--help").out)
    assert "top" not in USERS


def test_a_system_is_one_class(tmp_path):
    with restored(SYSTEMS):

        class Echo(System):
            """Answers with the first documents it was given. A name for an example."""

            name = "echo"
            times = Whole(1, "how often it says so", low=1)

            def index(self, documents, folder):
                self.ids = [document.id for document in documents]

            def search(self, query, k):
                return [(name, -float(i)) for i, name in enumerate(self.ids[:k])]

        answer = cranfield("run", "allotment", "--system", "echo:times=2", "-k", 3, "-o", tmp_path / "echo.run")
        assert answer.code == 0, answer.err
        assert {len(ranking) for ranking in read_run(tmp_path / "echo.run").to_dict().values()} == {3}
        assert "echo" in cranfield("run", "--help").out
        assert "Answers with the first documents" in cranfield("run", "--list").out
        assert "how often it says so" in cranfield("run", "--list").out
        assert "echo" in json.dumps(json.loads(cranfield("run", "--list", "--format", "json").out))
        assert "echo" in generator("generate_cli").page()


def test_a_measure_is_one_class():
    with restored(REGISTRY):

        class Firstness(Measure):
            """Whether the first document is relevant, in percent. A name for an example.

            >>> evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, "Firstness").mean()
            100.0
            """

            family = "precision and recall"
            formula = "100 if the document at rank 1 is relevant, else 0"
            reference = "nobody (2026)"
            peers = {"sometool": ("first_one",)}
            at = None
            high = 100
            rel = Real(1, "the lowest relevant grade")

            def score(self, hits):
                return 100.0 * hits.top(1).relevant(self.rel).count()

        by_peer = cranfield("eval", "qrels.txt", "bm25.run", "-m", "first_one")
        assert by_peer.code == 0, by_peer.err
        assert "Firstness" in cranfield("eval", "qrels.txt", "bm25.run", "-m", "Firstness").out.splitlines()[0]
        scores = evaluate(EXAMPLES / "qrels.txt", [EXAMPLES / "bm25.run", EXAMPLES / "dense.run"], "Firstness")
        found = compare(scores, resamples=30)
        assert "Firstness" in found.sentences()[0]
        assert "Firstness" in found.to_text()
        assert found.to_dict()["pairs"][0]["measure"] == "Firstness"
        assert "Whether the first document is relevant" in cranfield("measures").out
        assert "100 if the document at rank 1" in cranfield("measures", "Firstness").out
        assert "Firstness" in [each["name"] for each in json.loads(cranfield("measures", "--format", "json").out)]
        assert "Whether the first document is relevant" in generator("generate_measures").page()


# one file in the folder of its kind

FORMAT = """
from cranfield.formats.format import Format, Strength, rows_of


class Shouted(Format):
    'A run in capital letters, for the hard of hearing.'

    name = "shouted"
    about = "a first line that says SHOUT, then topic document score"
    kinds = ("run",)
    endings = (".shout",)

    def sniff(self, head):
        return Strength.SIGNATURE.of("run") if head.raw.startswith(b"SHOUT") else None

    def read(self, buffer, kind, where, lenient=False):
        rows = [line.split() for line in bytes(buffer).decode().splitlines()[1:]]
        return {topic: {d: float(s) for t, d, s in rows if t == topic} for topic, _, _ in rows}

    def write(self, table, kind, tag):
        yield b"SHOUT\\n"
        for topic, document, _, score, _ in rows_of(table, "run", tag):
            yield b"%b %b %r\\n" % (topic, document.upper(), score)
"""

LAYOUT = """
from cranfield.collection import Document, Topic
from cranfield.importers.source import Source


class Shopping(Source):
    'A document a line; the last line is a topic.'

    name = "shopping"
    about = "a shopping list: a document a line, the last line is what was forgotten"

    def documents_in(self, path):
        return (Document(str(number), text, text) for number, text in list(self.lines(path))[:-1])

    def topics(self):
        [path] = self.files.documents
        yield Topic("1", list(self.lines(path))[-1][1])
"""

COMMAND = '''"""Say hello to a run.

\\b
$ cranfield greet bm25.run
"""

import click

from cranfield.cli import options
from cranfield.cli.options import option

PLACE = 1


@options.command(__doc__)
@click.argument("run", metavar="RUN")
@option("--loudly", "Say it so that all can hear.", is_flag=True)
def command(run, loudly):
    click.echo(f"Hello {run}{'!' if loudly else '.'}")
'''

ASK = """
import json, sys
from shell import cranfield, generator
answers = [cranfield(*line, folder=sys.argv[1]) for line in json.load(sys.stdin)]
json.dump({"answers": [answer.both for answer in answers], "page": generator("generate_cli").page()}, sys.stdout)
"""


@pytest.fixture(scope="module")
def with_files(made_once: Callable[..., Path]) -> Path:
    """The package with one more file in each folder of members."""

    def make(folder: Path) -> None:
        ignored = shutil.ignore_patterns("__pycache__")
        package = Path(shutil.copytree(Path(package_file).parent, folder / "cranfield", ignore=ignored))
        (package / "formats" / "known" / "shouted.py").write_text(FORMAT)
        (package / "importers" / "layouts" / "shopping.py").write_text(LAYOUT)
        (package / "cli" / "greet.py").write_text(COMMAND)
        shutil.copytree(EXAMPLES, folder / "examples")

    return made_once("with-files", make)


def asked(folder: Path, *lines: str) -> tuple[list[str], str]:
    """What commands answer there, and the page of the command line."""
    path = os.pathsep.join([str(folder), str(EXAMPLES.parent / "tests")])
    answer = subprocess.run(
        [sys.executable, "-c", ASK, str(folder / "examples")],
        input=json.dumps([shlex.split(line) for line in lines]),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    return told["answers"], told["page"]


def test_a_format_is_one_file(with_files):
    (written, again, scored, checked, listing, plain, refused), _ = asked(
        with_files,
        "convert bm25.run loud.shout",
        "convert loud.shout loud.tsv",
        "eval qrels.txt loud.shout -m NumRet",
        "check loud.shout",
        "formats",
        "formats --format json",
        "convert bm25.run x.run --to nothing",
    )
    assert (with_files / "examples" / "loud.shout").read_text().startswith("SHOUT\nq1 DOC-"), written
    assert "DOC-" in (with_files / "examples" / "loud.tsv").read_text(), again
    assert "loud" in scored
    assert "loud.shout: note [shallow-run]" in checked
    assert "a first line that says SHOUT" in " ".join(listing.split())
    assert "shouted" in [each["name"] for each in json.loads(plain)]
    assert "shouted" in refused


def test_a_layout_of_collections_is_one_file(with_files):
    (with_files / "examples" / "list.txt").write_text("milk\nbread\nbutter\n")
    (made, shown, words, refused), page = asked(
        with_files,
        "import list.txt stall --from shopping",
        "collection show stall",
        "import --help",
        "import list.txt other --from nothing",
    )
    assert (with_files / "examples" / "stall" / "topics.jsonl").read_text().count("butter") == 1, made
    assert "shopping" in shown
    assert "|shopping" in "".join(words.split())
    assert "shopping" in refused
    assert "|shopping" in page


def test_a_command_is_one_file(with_files):
    (answered, listed, words, refused), page = asked(
        with_files, "greet bm25.run --loudly", "--help", "greet --help", "great bm25.run"
    )
    assert answered == "Hello bm25.run!\n"
    assert re.search(r"^  greet +Say hello to a run\.$", listed, re.MULTILINE)
    assert "Say it so that all can hear." in words
    assert "did you mean greet?" in refused
    assert "- [`cranfield greet`](#cranfield-greet): Say hello to a run.\n" in page
    assert "\n## cranfield greet\n" in page
    assert "Say it so that all can hear." in page


def test_a_format_of_events_is_one_class(tmp_path):
    from cranfield.formats.events.format import EVENT_FORMATS, EventFormat

    with restored(EVENT_FORMATS):

        class Diary(EventFormat):
            """A line a conversion: when, and who. A name for an example."""

            name = "diary"
            endings = (".diary",)

            def begins(self, head):
                return head.startswith("dear diary")

            def rows(self, reading):
                for number, line in enumerate(Path(reading.path).read_text().splitlines()[1:], 2):
                    time, unit = line.split()
                    yield number, {"event_id": line, "time": time, "kind": "conversion", "unit": unit}

            def write(self, rows):
                yield b"dear diary\n"
                for row in rows:
                    yield f"{row['time']} {row['unit']}\n".encode()

        (tmp_path / "my.diary").write_text("dear diary\n2025-03-01 ann\n2025-03-02 bob\n")
        answer = cranfield("online", "ingest", "log", "my.diary", folder=tmp_path)
        assert "2 events added of 2 read" in answer.out
        assert cranfield("online", "export", "log", "-o", "other.diary", folder=tmp_path).code == 0
        assert (tmp_path / "other.diary").read_text().splitlines()[2] == "2025-03-02T00:00:00.000000Z bob"
        for verb in ("ingest", "export"):
            assert "diary" in cranfield("online", verb, "--help").out
    assert "diary" not in EVENT_FORMATS
