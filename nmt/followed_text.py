"""A text whose lines arrive one after the other, for the Python interface."""

from collections.abc import Callable, Iterable
from copy import deepcopy

from nmt.data import python_text
from nmt.data.document_lines import Follower
from nmt.notebook import TranslatedSentence


class FollowedText:
    """A text whose lines arrive one after the other, from `RunTranslator.follow`.

    A run with context sees the sentences before each line in its document. Only these are kept.
    """

    def __init__(self, translate: Callable[..., list[TranslatedSentence]], follower: Follower) -> None:
        self._translate, self._follower = translate, follower

    def translate(self, lines: Iterable[str], prefixes: Iterable[str] = ()) -> list[TranslatedSentence]:
        """The best translations of the next lines. An empty line is translated as "", and ends a document.

        With `follow("one")` it does not end a document.

        Args:
            lines: the next lines of the text, in order.
            prefixes: see `RunTranslator.nbest`.

        Raises:
            UserError: the number of prefixes is not that of the lines, or the model cannot write a prefix.
        """
        taken = python_text.texts(lines, "lines")
        follower = deepcopy(self._follower)  # a call that fails has translated nothing
        translations = self._translate(taken, prefixes, follower.take(taken), "none")
        self._follower = follower
        return translations
