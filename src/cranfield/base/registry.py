"""The one registry of everything that users call by a name: measures, tests, formats, pages, commands and more.

A class enters the registry of its kind when its module is imported. The built-in modules of a kind are imported when a
name is first asked for that is not loaded yet. Other installed packages announce members as entry points of the group
`cranfield.<kind>`, each a module or a class; they are imported when a name is not built in or when all members are
listed, because searching for packages takes time. A built-in name cannot be replaced. There is no other list of names:
help, docs, messages and tests read the registry.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from cranfield.base.errors import ConventionError, CranfieldError, PluginWarning
from cranfield.base.parameters import Parametrised, described, read_call, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from importlib.metadata import Distribution, EntryPoint

OURS = "cranfield"
Entry = TypeVar("Entry")
AnyMember = TypeVar("AnyMember", bound="Member")


class Origin(NamedTuple):
    """Where a member comes from: a package and its version, or the module of a script that has none."""

    package: str
    version: str = ""

    @property
    def built_in(self) -> bool:
        """Whether cranfield itself defines the member."""
        return self.package == OURS

    def __str__(self) -> str:
        return f"{self.package} {self.version}".strip()


class Problem(NamedTuple):
    """An entry point that could not be used, and why."""

    group: str
    origin: Origin
    entry: str  # name = value, as the package declares it
    error: str

    def __str__(self) -> str:
        return f"{self.origin}: plugin {self.entry} in {self.group} is left out: {self.error}"


class Registry(Mapping[str, Entry]):
    """The members of one kind by name: classes, or one object for each."""

    kinds: ClassVar[list[Registry[Any]]] = []
    """Every registry whose module is imported."""

    def __init__(
        self,
        kind: str,
        group: str = "",
        homes: str | Sequence[str] = (),
        *,
        refusal: type[CranfieldError] = ConventionError,
        order: Callable[[Entry], Any] | None = None,
        listing: str = "",
        accept: Callable[[str, Any], Entry] | None = None,
    ) -> None:
        """A kind of members.

        `group` names the entry points, without `cranfield.`; a kind without one takes no plugins. `homes` are the
        modules of the built-in members; a package stands for all of its modules. `listing` is a command that lists
        the members, if they are too many for a message. `accept` turns the name and the value of an entry point into a
        member; it is needed if importing the value does not register one.
        """
        self.kind = kind  # for messages: "fusion method"
        self.group = group and f"{OURS}.{group}"
        self.homes = (homes,) if isinstance(homes, str) else tuple(homes)
        self.refusal = refusal
        self.listing = listing
        self._accept = accept
        self._order = order
        self._members: dict[str, Entry] = {}
        self._names: dict[str, str] = {}  # each folded name or alias, and whose it is
        self._origins: dict[str, tuple[Origin, str]] = {}  # of each member, with its module
        self._sorted: dict[str, Entry] | None = None
        self._loaded = False
        self.changes = 0  # how often a member was entered or taken out
        self._busy: set[int] = set()  # threads that are loading the built-in members
        Registry.kinds.append(self)

    # entering

    def add(self, member: Entry, name: str = "", module: str = "") -> None:
        """Register a member, under its own name unless `name` is given.

        A module that is run again, as in a notebook, replaces its own members. Any other name that is taken is refused.
        """
        cls = member if isinstance(member, type) else type(member)
        name = name or str(member.name)  # type: ignore[attr-defined]
        module = module or cls.__module__
        origin = _origin(module)
        if not origin.built_in:
            self.load()
        aliases = vars(cls).get("aliases", ())
        for other in dict.fromkeys(self._names.get(folded(each), name) for each in (name, *aliases)):
            if other != name or (name in self._members and self._origins[name][1] != module):
                self._refuse_clash(name, origin, other)
                return
        if name in self._members:
            self._forget_names(name)
        self._members[name] = member
        self._origins[name] = origin, module
        for each in (name, *aliases):
            self._names[folded(each)] = name
        self._sorted = None
        self.changes += 1

    def _refuse_clash(self, name: str, origin: Origin, other: str) -> None:
        owner, module = self._origins[other]
        error = f"a {self.kind} {other} exists already, in {owner} ({module})"
        entry = getattr(_local, "loading", None)
        if entry is None:
            raise self.refusal(f"{origin}: {error}")
        _report(Problem(self.group, origin, entry.text, error))

    def remove(self, name: str) -> None:
        """Remove a member; a name that is not registered is ignored."""
        self._forget_names(name)
        self._members.pop(name, None)
        self._origins.pop(name, None)
        self._sorted = None
        self.changes += 1

    def _forget_names(self, name: str) -> None:
        self._names = {key: owner for key, owner in self._names.items() if owner != name}

    # loading

    def load(self) -> None:
        """Import the built-in members."""
        thread = threading.get_ident()
        if self._loaded or thread in self._busy:
            return
        import importlib
        import pkgutil

        self._busy.add(thread)
        try:
            for home in self.homes:
                package = importlib.import_module(home)
                for module in pkgutil.iter_modules(getattr(package, "__path__", ())):
                    importlib.import_module(f"{home}.{module.name}")
        finally:
            self._busy.discard(thread)
        self._loaded = True

    def load_installed(self) -> None:
        """Import the members of other installed packages. A package that fails is reported and left out."""
        self.load()
        if self.group:
            load_group(self.group)

    def accept(self, entry: str, value: Any) -> None:
        """Register the object of an entry point, if importing it did not register it."""
        if self._accept is not None:
            self.add(self._accept(entry, value), module=_module_of(value))

    # reading

    def loaded(self) -> dict[str, Entry]:
        """The members whose modules are imported, in order."""
        if self._sorted is None:
            self._sorted = dict(sorted(self._members.items(), key=lambda item: self._place(*item)))
        return self._sorted

    def _place(self, name: str, member: Entry) -> Any:
        if self._order is not None:
            return self._order(member)
        origin, module = self._origins[name]
        return (False, module) if origin.built_in else (True, "")  # by file, then as they were defined

    def __getitem__(self, name: str) -> Entry:
        for _ in self._loads():
            if name in self._members:
                return self._members[name]
        raise KeyError(name)

    def _loads(self, installed: bool = True) -> Iterator[None]:
        """Stop after each stage of loading: nothing, the built-in members, those of other packages."""
        yield
        self.load()
        yield
        if installed:
            self.load_installed()
            yield

    def __iter__(self) -> Iterator[str]:
        self.load_installed()
        return iter(self.loaded())

    def __len__(self) -> int:
        self.load_installed()
        return len(self.loaded())

    def origin(self, name: str) -> Origin:
        """Where a member comes from."""
        return self._origins[name][0]

    def built_in(self) -> dict[str, Entry]:
        """The members that cranfield itself defines, in order."""
        self.load()
        return {name: member for name, member in self.loaded().items() if self._origins[name][0].built_in}

    # finding

    def find(self, name: str, installed: bool = True) -> Entry | None:
        """The member of that name or alias, in any case, with `-`, `_`, blanks and accents ignored; None if there is none.

        Without `installed`, other packages are not searched for it.
        """
        key = folded(name)
        for _ in self._loads(installed):
            if key in self._names:
                return self._members[self._names[key]]
        return None

    def look_up(self, name: str) -> Entry:
        """The member of that name or alias; an error that lists the names if there is none."""
        member = self.find(name)
        if member is None:
            raise self.unknown(name)
        return member

    def unknown(self, typed: str, others: Iterable[str] = ()) -> CranfieldError:
        """The error about a name that no member has; `others` are more names that may have been meant."""
        return unknown(self.kind, typed, self, others=others, refusal=self.refusal, listing=self.listing)

    def knows(self, typed: str) -> bool:
        """Whether a typed text is a member's name or alias, whatever parameters are in its brackets."""
        return self.find(read_call(typed)[0]) is not None

    def named(self: Registry[type[AnyMember]], typed: str | AnyMember) -> AnyMember:
        """The member for a typed text: a name or an alias, with parameters in brackets."""
        if not isinstance(typed, str):
            return typed
        name, parameters = read_call(typed)
        cls = self.find(name)
        if cls is None:
            raise self.unknown(typed)
        fixed = {folded(alias): values for alias, values in cls.of_alias.items()}
        return cls(**{**fixed.get(folded(name), {}), **parameters})


class Member:
    """A class that enters the registry of its kind when it is defined; one without a name of its own is only a base."""

    registry: ClassVar[Registry[Any]]
    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    of_alias: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # parameters that go with an alias

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            cls.registry.add(cls.entry())

    @classmethod
    def entry(cls) -> Any:
        """The object that the registry holds: the class, or an instance for kinds that hold instances."""
        return cls


class Registered(Member, Parametrised):
    """A member that takes parameters."""


def folded(name: str) -> str:
    """A name without the differences of typing: case, hyphens, underscores, blanks and accents.

    >>> folded("Min-Max") == folded("min_max"), folded("Šidák")
    (True, 'sidak')
    """
    if not name.isascii():
        import unicodedata

        name = "".join(each for each in unicodedata.normalize("NFKD", name) if not unicodedata.combining(each))
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def unknown(
    kind: str,
    typed: str,
    names: Iterable[str],
    *,
    others: Iterable[str] = (),
    refusal: type[CranfieldError] = ConventionError,
    listing: str = "",
) -> CranfieldError:
    """The error about a name that does not exist: all names, or the command that lists them, and the nearest name."""
    import difflib
    import re

    names = list(names)
    by_key = {folded(name): name for name in [*others, *names]}
    near = difflib.get_close_matches(folded(re.split(r"[@(:]", typed)[0]), by_key, n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(dict.fromkeys(by_key[key] for key in near))}?" if near else ""
    if listing:
        return refusal(f"no {kind} {shortened(typed)!r}{hint} ({listing} lists all)")
    return refusal(f"no {kind} {shortened(typed)!r}; there are {', '.join(names)}{hint}")


# other packages

_local = threading.local()
_loaded_groups: set[str] = set()
_busy_groups: set[tuple[int, str]] = set()  # those that a thread is loading
problems: dict[Problem, None] = {}
"""Every entry point that could not be used so far."""


def load_group(group: str) -> None:
    """Import the entry points of a group, once."""
    busy = threading.get_ident(), group
    if group in _loaded_groups or busy in _busy_groups:
        return
    _busy_groups.add(busy)
    for entry in installed().get(group, ()):
        _load(group, entry)
    _busy_groups.discard(busy)
    _loaded_groups.add(group)


def _load(group: str, entry: _Announced) -> None:
    before = getattr(_local, "loading", None)
    _local.loading = entry
    registries = [each for each in Registry.kinds if each.group == group]
    known = len(problems)
    try:
        value = entry.point.load()
        for registry in registries:
            registry.accept(entry.point.name, value)
        if len(problems) == known and not any(_claim(registry, entry, value) for registry in registries):
            _report(Problem(group, entry.origin, entry.text, f"it defines no {registries[0].kind}"))
    except (Exception, SystemExit) as error:
        _report(Problem(group, entry.origin, entry.text, f"{type(error).__name__}: {error}"))
    finally:
        _local.loading = before


def _claim(registry: Registry[Any], entry: _Announced, value: Any) -> bool:
    """Credit members that were imported earlier to their package; whether the package has any of this kind."""
    module = _module_of(value)
    for name, (origin, home) in registry._origins.items():
        if not origin.built_in and not origin.version and f"{home}.".startswith(f"{module}."):
            registry._origins[name] = entry.origin, home
    return any(origin == entry.origin for origin, _ in registry._origins.values())


def _module_of(value: Any) -> str:
    return str(value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", ""))


def _origin(module: str) -> Origin:
    if module == OURS or module.startswith(f"{OURS}."):
        return Origin(OURS)
    entry = getattr(_local, "loading", None)
    return Origin(module) if entry is None else entry.origin


def _report(problem: Problem) -> None:
    import warnings

    problems[problem] = None
    warnings.warn(PluginWarning(str(problem)), stacklevel=3)


class _Announced(NamedTuple):
    """An entry point and the package that declares it."""

    point: EntryPoint
    origin: Origin

    @property
    def text(self) -> str:
        """The entry point as the package declares it."""
        return f"{self.point.name} = {self.point.value}"


@cache
def installed() -> dict[str, list[_Announced]]:
    """The entry points of other packages for each group, packages in the order of their names.

    `importlib.metadata` takes longer to import than a small evaluation. So the function first searches the files of
    all packages for the group's name, and imports the module only if a package has one.
    """
    groups: dict[str, list[_Announced]] = {}
    packages: dict[str, Distribution] = {}
    for distribution in _distributions():
        # the first on the path is the one that is imported
        packages.setdefault(folded(distribution.name), distribution)
    for _, distribution in sorted(packages.items()):
        origin = Origin(distribution.name, distribution.version)
        for point in distribution.entry_points:
            if point.group.startswith(f"{OURS}."):
                groups.setdefault(point.group, []).append(_Announced(point, origin))
    return groups


def _distributions() -> Iterator[Distribution]:
    import os
    import sys

    for folder in dict.fromkeys(sys.path):
        if os.path.isfile(folder):  # a zip file
            from importlib.metadata import distributions

            yield from distributions(path=[folder])
            continue
        try:
            entries = os.scandir(folder or ".")
        except OSError:
            continue
        with entries:
            for each in entries:
                if each.name.endswith((".dist-info", ".egg-info")) and _announces(each.path):
                    from importlib.metadata import Distribution

                    yield Distribution.at(each.path)


def _announces(folder: str) -> bool:
    import os

    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            return f"[{OURS}.".encode() in file.read()
    except OSError:
        return False


def about(member: type) -> str:
    """The first paragraph of a class's docstring, on one line."""
    return " ".join((member.__doc__ or "").split("\n\n")[0].split())


def page(member: type[Registered], **facts: Any) -> dict[str, Any]:
    """The full description of a member that has a formula and a reference, with facts of its kind."""
    return {
        "name": member.name,
        "about": about(member),
        **facts,
        **{name: getattr(member, name) for name in ("formula", "reference")},
        "aliases": list(member.aliases),
        "parameters": described(member),
    }
