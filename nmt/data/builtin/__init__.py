"""The built-in corpus: parallel phrases made from the Unicode CLDR through Babel, with exact word alignments.

A data set like the ones of `nmt.data.files` and `nmt.data.hub`, but it needs no network and no files.
`locales` says a phrase in one language, `phrases` draws phrases and pairs the two languages, and `corpus`
makes the splits.  Babel is imported here and nowhere else.
"""

from nmt.data.builtin.corpus import BuiltIn, versions
from nmt.data.builtin.links import Pair, word_links

__all__ = ["BuiltIn", "Pair", "versions", "word_links"]
