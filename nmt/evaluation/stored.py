"""Translations of a large test set: a few in memory, the others with their weights in a temporary file."""

import pickle
import tempfile
import weakref
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

from nmt.errors import UserError
from nmt.files import unwritable
from nmt.translation.types import Translation

#: Translations that stay in memory. With their weights, these take some tens of MB.
IN_MEMORY = 2000


class StoredTranslations(Sequence[Translation]):
    """Translations in their order. Those after the first `IN_MEMORY` are read again whenever they are asked for."""

    def __init__(self, translations: Iterable[Translation]) -> None:
        """Take all translations, one after the other.

        Raises:
            UserError: the temporary folder is full.
        """
        self._first: list[Translation] = []
        self._places = array("Q")
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed, and so removed, with this object
        weakref.finalize(self, self._file.close)
        try:
            for translation in translations:
                if len(self._first) < IN_MEMORY:
                    self._first.append(translation)
                else:
                    self._places.append(self._file.tell())
                    pickle.dump(tuple(translation), self._file, pickle.HIGHEST_PROTOCOL)
            self._file.flush()
        except OSError as error:
            raise _full(error) from error

    def __len__(self) -> int:
        return len(self._first) + len(self._places)

    def __iter__(self) -> Iterator[Translation]:
        return (self[at] for at in range(len(self)))

    @overload
    def __getitem__(self, at: int) -> Translation: ...

    @overload
    def __getitem__(self, at: slice) -> list[Translation]: ...

    def __getitem__(self, at: int | slice) -> Translation | list[Translation]:
        if isinstance(at, slice):
            return [self[index] for index in range(len(self))[at]]
        at = range(len(self))[at]
        if at < len(self._first):
            return self._first[at]
        self._file.seek(self._places[at - len(self._first)])
        return Translation(*pickle.load(self._file))  # this process has written it


def _full(error: OSError) -> UserError:
    return unwritable(Path(tempfile.gettempdir()), error, "set TMPDIR=FOLDER")
