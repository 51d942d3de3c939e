"""Average precision from sampled judgments: against the definition, computed the long way, and against every sample there is.

An estimate is right if it is AP when all is judged, and if over all samples that could have been drawn it comes out as
AP on average: exactly so for the sums that statAP divides, nearly so for the quotient and for xinfAP.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Extras, evaluate, read_qrels
from cranfield.base.errors import BadLineError, DataError
from cranfield.formats import FORMATS, detect, write_qrels
from cranfield.formats.convert import convert
from hypotheses import examples
from oracles import proves
from shell import cranfield

RANKING = ["a", "b", "c", "d", "e", "f"]
GRADES = {"a": 1.0, "b": 0.0, "c": 1.0, "d": 0.0, "e": 1.0, "z": 1.0}  # f is not in the pool, z was not returned
RUN = {"q": {document: -float(i) for i, document in enumerate(RANKING)}}

Row = tuple[str, float, float, str]  # document, grade, probability, stratum


def estimate(measure: str, rows: list[Row]) -> float:
    qrels = {"q": {document: grade for document, grade, _, _ in rows}}
    known = {("q", document): (chance, stratum) for document, _, chance, stratum in rows}
    return evaluate(qrels, RUN, measure, extras=Extras(probabilities=known)).mean()


def stat_ap(rows: list[Row]) -> tuple[float, float]:
    """Aslam & Pavlu (2007): the estimates of the sum of precisions and of the number of relevant documents."""
    chance = {document: p for document, grade, p, _ in rows if grade >= 1}
    total = above = 0.0
    for rank, document in enumerate(RANKING, 1):
        if document in chance:
            total += (1 + above) / rank / chance[document]
            above += 1 / chance[document]
    return total, sum(1 / p for p in chance.values())


def xinf_ap(rows: list[Row]) -> float:
    """Yilmaz, Kanoulas & Aslam (2008) as NIST's sample_eval has it: AP of each stratum, weighted by its relevant ones."""
    stratum = {document: s for document, _, _, s in rows}
    grade = {document: g for document, g, _, _ in rows}
    strata = sorted(set(stratum.values()))
    pool = {s: [d for d in stratum if stratum[d] == s] for s in strata}
    drawn = {s: [d for d in pool[s] if grade[d] >= 0] for s in strata}
    relevant = {s: [d for d in drawn[s] if grade[d] >= 1] for s in strata}
    wanted = {s: len(relevant[s]) * len(pool[s]) / len(drawn[s]) if drawn[s] else 0.0 for s in strata}
    answer = 0.0
    for s in strata:
        precisions = 0.0
        for rank, document in enumerate(RANKING, 1):
            if document not in relevant[s]:
                continue
            precision = 1 / rank
            before = [d for d in RANKING[: rank - 1] if d in stratum]
            for t in strata:
                there = [d for d in before if stratum[d] == t]
                if there:
                    right, seen = sum(d in relevant[t] for d in there), sum(d in drawn[t] for d in there)
                    share = len(there) / len(before)
                    precision += len(before) / rank * share * (right + 1e-5) / (seen + 3e-5)
            precisions += precision
        if relevant[s]:
            answer += wanted[s] / sum(wanted.values()) * precisions / len(relevant[s])
    return answer


def some_rows() -> st.SearchStrategy[list[Row]]:
    documents = [*RANKING, "y", "z"]
    row = st.tuples(
        st.sampled_from(documents),
        st.sampled_from([-1.0, 0.0, 1.0, 2.0]),
        st.sampled_from([0.1, 0.25, 0.5, 0.8, 1.0]),
        st.sampled_from(["1", "2", "10"]),
    )
    return st.lists(row, min_size=1, max_size=8, unique_by=lambda each: each[0])


@proves("statAP")
@examples(40)
@given(rows=some_rows())
def test_stat_ap_against_a_loop_over_its_definition(rows: list[Row]) -> None:
    total, relevant = stat_ap(rows)
    assert estimate("statAP", rows) == pytest.approx(total / relevant if relevant else 0)


@proves("xinfAP")
@examples(40)
@given(rows=some_rows())
def test_xinf_ap_against_a_loop_over_its_definition(rows: list[Row]) -> None:
    assert estimate("xinfAP", rows) == pytest.approx(xinf_ap(rows))


@proves("statAP", "xinfAP")
def test_a_sample_of_everything_gives_average_precision() -> None:
    rows: list[Row] = [(document, grade, 1.0, "1") for document, grade in GRADES.items()]
    known = estimate("AP", rows)
    assert known == pytest.approx((1 + 2 / 3 + 3 / 5) / 4)
    assert estimate("statAP", rows) == known
    assert estimate("xinfAP", rows) == pytest.approx(known, abs=1e-4)


@proves("statAP")
def test_stat_ap_is_unbiased_against_exact_enumeration_of_all_samples() -> None:
    """Documents are drawn independently: both sums are right on average, and so, nearly, is their quotient."""
    chances = {"a": 0.5, "b": 0.4, "c": 0.8, "d": 0.9, "e": 0.6, "z": 0.7}
    true_total, true_relevant = 1 + 2 / 3 + 3 / 5, 4
    expected_total = expected_relevant = certain = 0.0
    for included in itertools.product([False, True], repeat=len(chances)):
        sample = [d for d, kept in zip(chances, included, strict=True) if kept]
        weight = math.prod(p if d in sample else 1 - p for d, p in chances.items())
        rows: list[Row] = [(d, GRADES[d], chances[d], "") for d in sample]
        if not rows:
            certain += weight
            continue
        relevant = sum(1 / chances[d] for d in sample if GRADES[d])
        expected_total += weight * estimate("statAP", rows) * relevant
        expected_relevant += weight * relevant
        certain += weight
    assert certain == pytest.approx(1)
    assert expected_total == pytest.approx(true_total)
    assert expected_relevant == pytest.approx(true_relevant)


@proves("xinfAP")
def test_xinf_ap_is_nearly_unbiased_against_exact_enumeration_of_all_samples() -> None:
    """A long list of which the top is judged in full and 4 of the 8 below by chance: 70 samples, all tried."""
    ranking = [f"d{i:02}" for i in range(14)]
    relevant = {0, 1, 3, 6, 7, 9, 10}
    top, rest = range(6), list(range(6, 14))
    run = {"q": {document: -float(i) for i, document in enumerate(ranking)}}
    known = {("q", d): (1.0, "top") if i in top else (0.5, "rest") for i, d in enumerate(ranking)}
    values = []
    for drawn in itertools.combinations(rest, 4):
        grades = {d: float(i in relevant) if i in top or i in drawn else -1.0 for i, d in enumerate(ranking)}
        values.append(evaluate({"q": grades}, run, "xinfAP", extras=Extras(probabilities=known)).mean())
    true = evaluate({"q": {d: float(i in relevant) for i, d in enumerate(ranking)}}, run, "AP").mean()
    assert len(values) == math.comb(8, 4)
    assert sum(values) / len(values) == pytest.approx(true, abs=0.02)
    assert max(values) - min(values) > 0.05  # single samples do differ


def test_xinf_ap_never_divides_by_more_than_the_cut_where_asked() -> None:
    rows: list[Row] = [("a", 1, 0.5, "1"), ("b", -1, 0.5, "1"), ("c", 1, 0.5, "1"), ("y", -1, 0.5, "1")]
    whole, cut = estimate("xinfAP@2", rows), estimate("xinfAP(divide=cut)@2", rows)
    assert cut == pytest.approx(whole * 4 / 2)  # four relevant documents are estimated


# the files


def test_the_probabilities_of_a_track_s_prels_are_read(shared: Any) -> None:
    path = shared / "anserini-qrels" / "prels.web.1-50.txt"
    assert detect(path) == ("prels", ("qrels",))
    qrels = read_qrels(path)
    known = qrels.extras.probabilities
    assert known is not None
    assert len(qrels) == len(known) == 13118
    assert known["1", "clueweb09-en0009-84-37392"] == (0.0136322534877696, "1")
    assert {chance for chance, method in known.values() if method == "0"} == {1.0}
    ideal = {t: {d: g for d, g in qrels[t].items() if g > 0} for t in qrels.topics}
    scores = evaluate(qrels, ideal, "statAP AP", no_relevant="skip")
    assert scores.mean("AP") == 1
    assert 0 < scores.mean("statAP") != 1


@proves("statAP")
def test_stat_ap_on_a_track_s_prels_against_a_loop_over_its_definition(shared: Any) -> None:
    qrels = read_qrels(shared / "anserini-qrels" / "prels.web.1-50.txt")
    known = qrels.extras.probabilities or {}
    run = {t: {d: -float(i) for i, d in enumerate(sorted(qrels[t])[:200])} for t in qrels.topics}
    scores = evaluate(qrels, run, "statAP")
    for topic in qrels.topics:
        judged = qrels[topic]
        total = above = 0.0
        for rank, document in enumerate(run[topic], 1):
            if judged[document] >= 1:
                stands_for = 1 / known[topic, document][0]
                total += (1 + above) / rank * stands_for
                above += stands_for
        every = sum(1 / known[topic, d][0] for d, grade in judged.items() if grade >= 1)
        assert scores[topic] == pytest.approx(total / every if every else 0)


STRATA = b"7 0 a 1 1\n7 0 b 2 -1\n7 0 c 2 1\n7 0 z 2 -1\n8 0 a 1 0\n"


def test_strata_are_read_with_the_share_that_was_drawn() -> None:
    qrels = read_qrels(STRATA)
    assert qrels["7"] == {"a": 1, "b": -1, "c": 1, "z": -1}
    known = qrels.extras.probabilities or {}
    assert known["7", "c"] == known["7", "z"] == (1 / 3, "2")
    assert known["7", "a"] == known["8", "a"] == (1.0, "1")
    run = {"7": {"a": 3.0, "b": 2.0, "c": 1.0}}
    assert evaluate(qrels, run, "xinfAP", topics=["7"]).mean() == pytest.approx(
        (1 + 3 * (1 + 1 + 1 / 3) / 3) / 4, abs=1e-4
    )


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"7 a 1 1 0.5\n7 b 0 0 1\n", "prels"),
        (b"7 0 a 1 1\n7 0 b 2 -1\n", "strata"),
        (b"7 0 1001 1 1\n7 0 1002 2 -1\n7 0 1003 2 0\n", "strata"),
        (b"7 0 0 1001 1\n7 0 0 1002 2\n7 0 0 1003 2\n", "prefs"),
        (b"7 judge 1 d1 0.5\n7 judge 1 d2 1\n", "prefs"),
        (b"7 1 1 1 0.5\n7 1 1 2 1\n", "prefs"),
    ],
)
def test_five_columns_are_told_apart(content: bytes, name: str) -> None:
    assert detect(content)[0] == name


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            b"7 b 1 1 0\n",
            r"file:2: expected a probability above 0 and no more than 1 in column 5 \(probability\), found '0'",
        ),
        (b"7 b 1 1 NA\n", "file:2: expected a probability above 0 and no more than 1 .*, found 'NA'"),
        (b"7 b 1 1 1.5\n", "file:2: expected a probability .* found '1.5'"),
        (b"7 b 1 x 0.5\n", r"file:2: expected 0 to 4 in column 4 \(method\), found 'x'"),
        (b"7 b one 1 0.5\n", r"file:2: expected a finite number in column 3 \(grade\), found 'one'"),
        (b"7 b 1 1\n", r"file:2: expected 5 columns \(topic document grade method probability\), found 4"),
    ],
)
def test_a_line_that_says_nothing_sound_of_the_sampling_is_refused_or_left_out(
    line: bytes, problem: str, tmp_path: Any
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"7 a 1 1 0.5\n" + line + b"7 c 1 0 NA\n")
    with pytest.raises(BadLineError, match=problem):
        read_qrels(str(path), format="prels")
    sound = read_qrels(str(path), format="prels", lenient=True)
    assert sound.to_dict() == {"7": {"a": 1, "c": 1}}
    assert len(sound.skipped) == 1
    assert sound.extras.probabilities == {("7", "a"): (0.5, "1"), ("7", "c"): (1.0, "0")}


@pytest.mark.parametrize("name", ["prels", "strata"])
def test_what_is_known_of_the_sampling_is_written_and_read_back(name: str, tmp_path: Any) -> None:
    qrels = read_qrels(FORMATS[name].examples["qrels"], format=name)
    write_qrels(qrels, tmp_path / "again", format=name)
    again = read_qrels(tmp_path / "again", format=name)
    assert again.to_dict() == qrels.to_dict()
    assert again.extras == qrels.extras
    assert convert(tmp_path / "again", tmp_path / "third", to_format=name).notes == []
    [note] = convert(tmp_path / "again", tmp_path / "plain.qrels").notes
    assert note.startswith("how documents were sampled is not kept")


def test_what_was_not_sampled_cannot_be_estimated(tmp_path: Any) -> None:
    with pytest.raises(DataError, match=r"statAP needs the probabilities .* \(qrels as prels or strata"):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, "statAP")
    (tmp_path / "a.prels").write_bytes(b"7 a 1 0 1\n7 b 0 1 0.25\n7 c 1 1 0.25\n")
    (tmp_path / "a.run").write_bytes(b"7 Q0 a 1 3 t\n7 Q0 b 2 2 t\n7 Q0 c 3 1 t\n")
    answer = cranfield(
        "eval", "a.prels", "a.run", "-m", "statAP FallOut", "--collection-size", 9, "--format", "csv", folder=tmp_path
    )
    assert answer.out.splitlines()[1].split(",")[1:3] == ["0.7333333333333333", str(1 / 7)]
