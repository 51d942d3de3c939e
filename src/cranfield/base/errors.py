"""Everything that cranfield raises on purpose.

CranfieldError
├── DataError (ValueError)            a file or a value that cannot be evaluated
│   ├── BadLineError                  file:line: what was expected, what was found
│   │   └── DuplicateError            the same document twice for one topic
│   ├── ContradictionError            a judge who prefers each of two documents to the other
│   ├── FormatError                   a file whose format is not recognised, or does not fit
│   ├── TokenError                    a token that was not sealed here, was changed, or has expired
│   ├── TooLargeError                 a file or a request beyond the size limit
│   ├── TopicError                    a topic that is missing where one is needed
│   └── UnavailableError              a database or a disk that cannot be used now
├── MeasureError (ValueError)         a measure's name or parameter that makes no sense
│   └── UnknownMeasureError
├── ConventionError (ValueError)      a convention or a preset that does not exist
└── MissingExtraError (ImportError)   an optional dependency that is not installed

DataWarning (UserWarning)             scores that may mean nothing, and why
└── UnjudgedWarning                   many documents were returned, and none of them is judged
PluginWarning (UserWarning)           a plugin of another package that cannot be used, and why

The command line turns DataError and UnjudgedWarning into exit code 3 and the other errors into 2; it prints the warnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class CranfieldError(Exception):
    """The base class of all errors; the text is a sentence for the user."""


class DataError(CranfieldError, ValueError):
    """A file or a value that cannot be evaluated."""


class BadLineError(DataError):
    """One line of a file that cannot be read; the text starts with `file:line:`."""

    def __init__(self, where: str, line: int, problem: str) -> None:
        super().__init__(f"{where}:{line}: {problem}")
        self.where = where
        self.line = line
        self.problem = problem

    def __reduce__(self) -> tuple[type[BadLineError], tuple[Any, ...]]:
        return type(self), (self.where, self.line, self.problem)


class DuplicateError(BadLineError):
    """The same document twice for one topic; `advice` names the option that selects one of the two."""

    def __init__(self, where: str, line: int, problem: str, advice: str = "") -> None:
        super().__init__(where, line, problem)
        self.args = (f"{where}:{line}: {problem}{f' ({advice})' if advice else ''}",)
        self.advice = advice

    def __reduce__(self) -> tuple[type[BadLineError], tuple[Any, ...]]:
        return type(self), (self.where, self.line, self.problem, self.advice)


class ContradictionError(DataError):
    """A judge who prefers each of two documents to the other."""


class FormatError(DataError):
    """A file whose format is not recognised or is not the expected one; `kind` says what was expected: run or qrels."""

    def __init__(self, problem: str, kind: str | None = None) -> None:
        super().__init__(problem)
        self.kind = kind


class TokenError(DataError):
    """A token that was not sealed here, was changed on the way, or has expired."""


class TooLargeError(DataError):
    """A file or a request that is larger than the limit."""


class TopicError(DataError):
    """A topic that is missing where one is needed."""


class UnavailableError(DataError):
    """A database or a disk that cannot be used now; a later attempt may succeed."""


class MeasureError(CranfieldError, ValueError):
    """A measure's name or parameter that makes no sense."""


class UnknownMeasureError(MeasureError):
    """The name of a measure that does not exist."""


class ConventionError(CranfieldError, ValueError):
    """A convention or a preset that does not exist."""


class MissingExtraError(CranfieldError, ImportError):
    """An optional dependency that is not installed."""


class DataWarning(UserWarning):
    """A problem that could make scores meaningless, found by the sanity checks."""


class UnjudgedWarning(DataWarning):
    """None of very many returned documents is judged or in the collection: do both use the same ids?"""


class PluginWarning(UserWarning):
    """A plugin of another package that cannot be used, and why."""
