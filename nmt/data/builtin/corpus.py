"""The splits of the built-in corpus.

A data set for training and evaluation (`nmt.data.corpus`), drawn from `phrases` when it is first read.  The
same languages, sizes and seed give the same corpus with the same version of Babel, on every machine.
"""

import functools
import random

import babel
from babel import Locale, UnknownLocaleError
from babel.core import get_cldr_version, parse_locale
from babel.localedata import locale_identifiers

from nmt.data.builtin.links import Pair
from nmt.data.builtin.locales import Language
from nmt.data.builtin.phrases import Phrases
from nmt.data.corpus import DataSource, Split
from nmt.errors import UserError, nearest
from nmt.limits import NotNegative, Positive


def versions() -> dict[str, str]:
    """The versions of Babel and of the CLDR inside of it, on which the corpus depends."""
    return {"babel": str(babel.__version__), "cldr": get_cldr_version()}


class BuiltIn(DataSource):
    """Parallel phrases for any two locales of Babel's: dates, amounts, names and phrases that join them.

    No sentence occurs twice, on either side, within a split or in two of them.  `train_pairs`, `valid_pairs`
    and `test_pairs` are counts; the validation and the test set stay the same when only `train_pairs` changes.
    Names on their own are in `train` alone, since nobody can guess them.

    Raises UserError for an unknown locale or a size below 1, and from `read` if the two locales have too
    little in common for so many different phrases.
    """

    has_links = True

    def __init__(
        self,
        source: str = "en",
        target: str = "eu",
        seed: NotNegative = 1,
        train_pairs: Positive = 20000,
        valid_pairs: Positive = 500,
        test_pairs: Positive = 500,
    ) -> None:
        self._locales = (locale_of(source, "source"), locale_of(target, "target"))
        self.languages = (source, target)
        self.name = f"builtin-{source}-{target}"
        self.seed = seed
        self._sizes = {"valid": valid_pairs, "test": test_pairs, "train": train_pairs}

    def tests(self) -> list[str]:
        """There is one test split, "test"."""
        return ["test"]

    def read(self, split: str) -> Split:
        """The split called "train", "valid" or "test", with its gold word links."""
        pairs = self.pairs(split)
        return Split(
            split,
            [pair.source for pair in pairs],
            [pair.target for pair in pairs],
            [pair.links() for pair in pairs],
        )

    def pairs(self, split: str) -> list[Pair]:
        """The phrases of a split with the character spans of their fields."""
        if split not in self._sizes:
            raise self.unknown_split(split)
        return self._corpus[split]

    def notes(self) -> list[str]:
        """Where the corpus comes from."""
        made_of = versions()
        sizes = " / ".join(f"{self._sizes[split]:,}" for split in ("train", "valid", "test"))
        return [
            f"Built-in corpus {self.languages[0]}-{self.languages[1]}: {sizes} phrases (train / valid / "
            f"test) of Unicode CLDR {made_of['cldr']} through Babel {made_of['babel']}, seed {self.seed}."
        ]

    @functools.cached_property
    def _corpus(self) -> dict[str, list[Pair]]:
        phrases = Phrases(*(Language(locale) for locale in self._locales))
        sources, targets = set[str](), set[str]()
        corpus = {}
        for split, size in self._sizes.items():
            rng = random.Random(f"{self.seed} {split}")
            pairs = list[Pair]()
            if split == "train":
                # A small corpus is not to be swamped by names; in one of the usual size they all find room.
                names = phrases.single_names()
                for name in rng.sample(names, min(len(names), size // 10)):
                    pair = phrases.pair(name)
                    if pair.source not in sources and pair.target not in targets:
                        pairs.append(pair)
                        sources.add(pair.source)
                        targets.add(pair.target)
            attempts = 50 * size + 1000
            while len(pairs) < size:
                attempts -= 1
                if attempts < 0:
                    raise self._too_little(split, size, len(pairs))
                drawn = phrases.draw(rng)
                if drawn is None or drawn.source in sources or drawn.target in targets:
                    continue
                pairs.append(drawn)
                sources.add(drawn.source)
                targets.add(drawn.target)
            rng.shuffle(pairs)
            corpus[split] = pairs
        return corpus

    def _too_little(self, split: str, size: int, found: int) -> UserError:
        return UserError(
            f"The CLDR gives only {found:,} different phrases for {split} in {self.languages[0]} and "
            f"{self.languages[1]}, not {size:,}. Ask for fewer (data.{split}_pairs={max(1, found // 2)}) "
            "or choose other languages."
        )


def locale_of(code: object, side: str) -> Locale:
    """Babel's locale for a code such as "de", "zh_Hans" or "pt-BR"."""
    if not isinstance(code, str):
        raise UserError(
            f"data.{side} is {code!r}, not the code of a language. Put it in quotes (yaml reads no as false)."
        )
    try:
        tag = code.replace("-", "_")
        locale = Locale.parse(tag)
        # Babel drops a script or a territory that it does not know.
        _, territory, script, *_ = parse_locale(tag)
        if (territory or locale.territory, script or locale.script) != (locale.territory, locale.script):
            raise UnknownLocaleError(tag)
        return locale
    except (UnknownLocaleError, ValueError, TypeError) as error:
        names = {name.lower(): tag for tag, name in Locale("en").languages.items()}
        known = locale_identifiers()
        hint = nearest(code, known)
        if names.get(code.lower()) in known:
            hint = f" Did you mean '{names[code.lower()]}'?"
        raise UserError(
            f"data.{side}={code}: Babel knows no such locale. Give a code such as en, eu, pt_BR or zh_Hans.{hint}"
        ) from error
