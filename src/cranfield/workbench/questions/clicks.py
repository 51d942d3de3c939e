"""The question about clicks: clicks and examination by rank, and click-through by judged grade."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.base.parameters import Text
from cranfield.experiments.clicks.click_summary import MODEL, ClickSummary, click_summary
from cranfield.experiments.clicks.model import CLICK_MODELS
from cranfield.formats.collection_folder import TOPICS
from cranfield.inputs.selection import JudgmentSource, basis, judgment_source, nothing_judged, qrels_of
from cranfield.reports.result_charts import charts_of
from cranfield.workbench.question import (
    PAGE,
    Tell,
    WorkbenchQuestion,
    figures_html,
    refuse_policy,
    scrolling_table,
    section_html,
    verdict_html,
)

if TYPE_CHECKING:
    from cranfield.base.results import Answer
    from cranfield.inputs.workspace import Bench


class ClicksQuestion(WorkbenchQuestion):
    """Clicks and examination by rank in the workspace's event log, and click-through by judged grade."""

    name = "clicks"
    activity = "reading clicks and fitting the click model"
    model = Text(MODEL, "the click model that says how far users look")
    judgments = Text("", "log, log@NAME or collection; default: the log if it has labels, else the collection, if any")
    policy = Text("latest", "the label of the log that counts where people differ")

    def refuse(self, bench: Bench) -> None:
        CLICK_MODELS.named(self.model)
        refuse_policy(self.policy)
        self.source(bench)
        bench.event_log()

    def source(self, bench: Bench) -> JudgmentSource | None:
        """The source of the judgments; None if nothing is judged."""
        return None if not self.judgments and nothing_judged(bench) else judgment_source(bench, self.judgments)

    def depends_on_labels(self, bench: Bench) -> bool:
        source = self.source(bench)
        return source is not None and source.depends_on_labels

    def depends(self, bench: Bench) -> dict[str, str]:
        source, topics = self.source(bench), bench.file(TOPICS)
        hashes = {} if source is None else basis(bench, source, self.policy)
        hashes |= {} if topics is None else {"topics": bench.hashes.of(topics)}
        return hashes | {"events": bench.event_state()}

    def run(self, bench: Bench, tell: Tell) -> Answer:
        source, topics = self.source(bench), bench.topics()
        judgments = None if source is None else qrels_of(bench, source, self.policy).to_dict()
        queries = None if topics is None else topics.queries
        return click_summary(bench.event_log(), judgments, queries, model=self.model)

    def html(self, bench: Bench, answer: Answer) -> str:
        assert isinstance(answer, ClickSummary)
        text = "The tables below hold the numbers."
        charts = [(drawing, text) for drawing in charts_of(answer)]
        parts = [verdict_html(*answer.verdict()), f'<div class="pair">{figures_html(charts)}</div>']
        parts.append(section_html("By rank", scrolling_table(answer.rank_table(PAGE))))
        if answer.grades:
            parts.append(section_html("By judged grade", scrolling_table(answer.grade_table(PAGE))))
        return "".join(parts)
