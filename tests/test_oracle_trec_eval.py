"""Our measures under trec_eval's names, against recorded outputs of trec_eval 9.0.8 and 10.

The drop-in is compared byte by byte elsewhere. Here the library itself is asked, through `evaluate` and a preset, so
the exceptions are those where trec_eval's number is not worth repeating; each has its own test below.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from conftest import SHARED
from cranfield import Measure, evaluate, measure
from cranfield.base.errors import MeasureError
from cranfield.evaluation.measures import REGISTRY
from oracles import per_topic, printed, proves, wide_run

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = SHARED / "trec_eval-golden"
NOT_OURS = {"-Z", "-M"}  # z-scores, cutting the list: the drop-in's business


@dataclass(frozen=True)
class Golden:
    """One recorded command."""

    version: str
    arguments: str
    output: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.arguments)

    @property
    def level(self) -> int:
        """The lowest relevant grade: -l2 or -l 3."""
        given = self.arguments.partition("-l")[2].split()
        return int(given[0]) if given else 1

    @property
    def changes(self) -> dict[str, str]:
        missing = {"missing": "zero"} if "-c" in self.words else {}
        return missing | ({"unjudged": "drop"} if "-J" in self.words else {})


def recorded(*versions: str) -> list[Any]:
    file = FOLDER / "COMMANDS.txt"
    if not file.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="needs ../shared/data"))]
    rows = [[cell.strip() for cell in line.split("|")] for line in file.read_text().splitlines() if line[0] != "#"]
    golden = [Golden(version, arguments, output) for version, code, arguments, output in rows if code == "0"]
    return [
        pytest.param(each, id=each.output)
        for each in golden
        if each.version in versions and not NOT_OURS & set(each.words)
    ]


def known(name: str, golden: Golden) -> Measure | None:
    """Our measure of that name, with recall levels counted as this version does."""
    try:
        ours = measure(name, golden.level)
    except MeasureError:
        return None
    if "level" in ours.parameters:
        return type(ours)(**{**ours.values, "level": f"trec_eval-{golden.version}"})
    return ours


def excepted(name: str, golden: Golden, expected: str) -> bool:
    """Whether trec_eval's number is one that we do not repeat."""
    bare_count = name == "num_rel" and "-c" in golden.words and golden.level > 1
    all_judged = name == "rbp_resid" and ("-J" in golden.words or golden.output == "026.v10.out")
    level_of_rndcg = name == "Rndcg" and golden.level > 1  # ours knows gains only; the drop-in repeats the level
    return bare_count or all_judged or level_of_rndcg or "nan" in expected


UNRECORDED = {"DCG", "IdealDCG"}  # in none of trec_eval's nicknames
PROVED = sorted(
    cls.name
    for cls in REGISTRY.values()
    if "trec_eval" in cls.peers and cls.name not in UNRECORDED and cls.family != "preferences"
)  # test_oracle_preferences.py proves that family
SUMMARIES = ("runid", "gm_map", "gm_bpref", "relstring", "relstring_20", "relstring_30", "utility_1,-1,0,0")


@proves(*PROVED)
@pytest.mark.parametrize("golden", recorded("9", "10"))
def test_measures_by_their_trec_eval_names_against_recorded_outputs_of_trec_eval(shared: Path, golden: Golden) -> None:
    lines = [line.split() for line in (FOLDER / golden.output).read_text().splitlines()]
    names = dict.fromkeys(line[0] for line in lines)
    ours = {name: found for name in names if (found := known(name, golden)) is not None}
    assert set(names) - set(ours) <= set(SUMMARIES)
    qrels, run = golden.words[-2:]
    scores = evaluate(
        shared / qrels,
        wide_run(shared / run),
        list(ours.values()),
        conventions=f"trec_eval-{golden.version}",
        **golden.changes,
    )
    topics = {**per_topic(scores), "all": scores.means()}
    for name, topic, expected in lines:
        if name in ours and not excepted(name, golden, expected):
            assert printed(topics[topic][str(ours[name])], like=expected) == expected, (name, topic)


def test_the_recorded_outputs_of_trec_eval_cover_the_measures_that_we_say_they_prove(shared: Path) -> None:
    covered = set()
    for parameter in recorded("9", "10"):
        [golden] = parameter.values
        names = {line.split()[0] for line in (FOLDER / golden.output).read_text().splitlines()}
        covered |= {type(found).name for name in names if (found := known(name, golden)) is not None}
    assert covered == set(PROVED)


def test_num_rel_counts_from_the_level_asked_for_where_trec_eval_with_c_and_l_forgets_it(shared: Path) -> None:
    qrels = shared / "trec-covid-r3" / "qrels.covid-round3.txt"
    run = shared / "trec-covid-r3" / "runs" / "covidex.r3.t5_lr"
    assert evaluate(qrels, run, "num_rel", rel=2).mean() == 2609
    assert "num_rel               \tall\t4698" in (FOLDER / "033.v9.out").read_text()


def test_an_empty_list_scores_0_where_trec_eval_prints_nan() -> None:
    scores = evaluate({"q": {"a": 1}}, {"q": {"u": 1}}, "IPrec@0 11pt", unjudged="drop")
    assert scores.means() == {"IPrec@0": 0, "11pt": 0}


def test_the_residual_of_rbp_is_never_0_where_trec_eval_says_so_of_a_list_that_is_judged_throughout() -> None:
    """What lies below the end of the list was not judged either: Moffat & Zobel (2008)."""
    scores = evaluate({"q": {"a": 1, "b": 0}}, {"q": {"a": 2, "b": 1}}, "RBPresidual(p=0.9)")
    assert scores.mean() == pytest.approx(0.9**2)
