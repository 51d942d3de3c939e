"""Small logs of experiments, for tests: events written by hand, and plans beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cranfield.experiments.event import UserEvent
from cranfield.experiments.log import EventLog

if TYPE_CHECKING:
    from pathlib import Path

START = datetime(2025, 3, 1, tzinfo=UTC)
AFTER = START + timedelta(days=15)
PLAN = """name = "shop"
start = 2025-03-01

[variants]
control = 0.5
new = 0.5

[horizon]
days = 14
"""


@dataclass
class Trail:
    """What happened, an event at a time."""

    events: list[UserEvent] = field(default_factory=list)

    def add(self, kind: str, unit: str, day: float = 0.0, second: float = 0.0, **more: Any) -> Trail:
        more.setdefault("event_id", f"e{len(self.events)}")
        time = START + timedelta(days=day, seconds=second)
        self.events.append(UserEvent(time=time.isoformat(), kind=kind, unit=unit, **more))
        return self

    def expose(self, unit: str, variant: str, day: float = 0.0, **more: Any) -> Trail:
        return self.add("exposure", unit, day, experiment="shop", variant=variant, **more)

    def search(
        self,
        unit: str,
        search: str,
        day: float = 0.0,
        second: float = 1.0,
        clicks: Any = (),
        query: str = "mug",
        **more: Any,
    ) -> Trail:
        """A result page, and clicks on it: (rank, seconds after it, seconds of dwell) each."""
        session = more.setdefault("session", f"{unit}-{int(day)}")
        self.add("impression", unit, day, second, search=search, query=query, shown=("d1", "d2", "d3", "d4"), **more)
        for rank, after, dwell in clicks:
            about = {"search": search, "session": session, "document": f"d{rank}"}
            self.add("click", unit, day, second + after, position=rank, **about)
            if dwell is not None:
                self.add("dwell", unit, day, second + after + dwell, position=rank, value=dwell, **about)
        return self

    def write(self, folder: Path) -> str:
        with EventLog(folder, create=True) as log:
            log.append(self.events)
        return str(folder)


def plan_file(folder: Path, more: str = "", text: str = PLAN, name: str = "plan.toml") -> str:
    """A plan; `more` may begin with keys that stand at its top."""
    top, _, tables = f"\n{more}".partition("\n[")
    path = folder / name
    path.write_text(f"{top}\n{text}\n{'[' if tables else ''}{tables}", encoding="utf-8")
    return str(path)


def many(rng: Any, units: int = 200, lift: float = 0.3, share: float = 0.5) -> Trail:
    """An experiment of units that search once or more, of which those that see the new one click more."""
    trail = Trail()
    for i in range(units):
        unit, new = f"u{i:04d}", i % 2 == 1
        day = float(rng.uniform(0, 13))
        trail.expose(unit, "new" if new else "control", day, attributes={"device": "phone" if i % 3 else "desk"})
        taste = rng.beta(2, 3)
        for n in range(1 + rng.poisson(1.5)):
            clicked = rng.random() < taste + lift * new
            clicks = (
                [(int(rng.integers(1, 5)), float(rng.exponential(9)), float(rng.exponential(35)))] if clicked else []
            )
            trail.search(unit, f"{unit}-{n}", day + n * 0.4, 2.0, clicks, query=("mug", "pan")[int(rng.integers(2))])
            if clicked and rng.random() < 0.4:
                trail.add("conversion", unit, day + n * 0.4, 300, value=float(rng.exponential(20)))
    return trail
