"""What counts as a word, by hand and against the official Multi30k files."""

import pytest

from nmt.alignment.splitters import moses, splitter
from nmt.system.errors import UserError
from tests.alignment.by_hand import read_corpus


def test_what_cuts_words() -> None:
    assert splitter("whitespace", "de")("Es  ist's,\u00a0ja.") == ["Es", "ist's,", "ja."]
    assert splitter("char", "zh")("我 爱") == ["我", "爱"]
    # Lower-cased and normalised (as Moses does, also the order of a closing mark), signs where it writes escapes.
    assert splitter("moses", "en")("It's “A & B”.") == ["it", "'s", '"', "a", "&", "b", ".", '"']
    with pytest.raises(UserError, match=r"words=tokens is not known\. Give words= one of whitespace, moses, char"):
        splitter("tokens", "de")


def test_moses_recipe_by_hand() -> None:
    prepared = moses("en")('A man\'s "T-Shirt", seen at 5.')
    assert prepared == "a man &apos;s &quot; t-shirt , &quot; seen at 5 ."


@pytest.mark.parametrize("split", ["val", "test_2016_flickr", "test_2017_flickr"])
@pytest.mark.parametrize("language", ["de", "en", "fr"])
def test_moses_recipe_gives_the_official_references(split: str, language: str) -> None:
    raw = read_corpus(f"multi30k/{split}.{language}.gz")
    official = read_corpus(f"multi30k/tok/{split}.lc.norm.tok.{language}.gz")
    prepare = moses(language)
    assert [prepare(line) for line in raw] == official
