"""What Arrow complains about while it reads Parquet, as a sentence that names the file."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cranfield.errors import CranfieldError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def arrow_in_words(where: str) -> Iterator[None]:
    """Raise DataError for whatever Arrow or the system raises while a Parquet file is read."""
    try:
        yield
    except (CranfieldError, MemoryError):
        raise
    except OSError as error:
        if error.errno is not None:
            raise DataError(f"{where}: {os.strerror(error.errno).lower()}") from error
        raise _damaged(where, error) from error
    except (ValueError, KeyError, TypeError, OverflowError) as error:  # ArrowInvalid is a ValueError, and so on
        raise _damaged(where, error) from error
    except Exception as error:
        from pyarrow import ArrowException  # type: ignore[import-untyped, import-not-found, unused-ignore]

        if isinstance(error, ArrowException):
            raise _damaged(where, error) from error
        raise


def _damaged(where: str, error: Exception) -> DataError:
    return DataError(f"{where}: corrupt Parquet file ({' '.join(str(error).split())})")
