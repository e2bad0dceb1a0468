"""Translation of a text whose lines arrive over time, for the Python interface."""

from collections.abc import Callable, Iterable
from copy import deepcopy

from nmt.data import python_text
from nmt.data.document_lines import Follower
from nmt.notebook import TranslatedSentence


class FollowedText:
    """A translator for a text whose lines arrive over time, from `RunTranslator.follow`.

    A run with context sees the previous sentences of each line in its document. Only these sentences are kept.
    """

    def __init__(self, translate: Callable[..., list[TranslatedSentence]], follower: Follower) -> None:
        self._translate, self._follower = translate, follower

    def translate(self, lines: Iterable[str], prefixes: Iterable[str] = ()) -> list[TranslatedSentence]:
        """Return the best translations of the next lines. An empty line is translated as "", and ends a document.

        With `follow("one")`, empty lines do not end a document.

        Args:
            lines: the next lines of the text, in order.
            prefixes: see `RunTranslator.nbest`.

        Raises:
            UserError: the numbers of prefixes and lines differ, or the model has no pieces for a prefix.
        """
        taken = python_text.texts(lines, "lines")
        follower = deepcopy(self._follower)  # a copy, so that a failed call does not change the context
        translations = self._translate(taken, prefixes, follower.take(taken), "none")
        self._follower = follower
        return translations
