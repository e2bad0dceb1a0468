"""Languages: what names mean, what file names and first lines tell, and when a text is not of its language."""

import gzip
from pathlib import Path

import pytest

from nmt.data.columns import guess_languages
from nmt.data.languages import UNNAMED, doubts, language_code, language_codes

ENGLISH, CHINESE = ["I love you.", "Good morning."], ["我爱你。", "早上好。"]
JAPANESE, GERMAN = ["わたしは学生です。", "おはようございます。"], ["Ich liebe dich.", "Guten Morgen."]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("de", "de"),
        ("cmn", "cmn"),
        ("zh-Hans", "zh-Hans"),
        ("no", "no"),
        ("cn", "zh"),
        ("cz", "cs"),
        ("uk", "uk"),
        ("chinese", "zh"),
        ("Mandarin", "zh"),
        ("thai", "th"),
        ("cmn-raw", None),
        ("us", None),
        ("corpus", None),
        ("数据", None),
    ],
)
def test_what_a_name_means(name: str, code: str | None) -> None:
    assert language_code(name) == code


def test_names_that_mean_nothing_or_the_same_stay() -> None:
    assert language_codes(("cn", "german")) == ("zh", "de")
    assert language_codes(("cn", "zh")) == ("cn", "zh")
    assert language_codes(("klingon-lc", "source")) == ("klingon-lc", "source")


@pytest.mark.parametrize(
    ("files", "codes"),
    [
        (["corpus.de", "corpus.en"], ("de", "en")),
        (["corpus.de.gz", "corpus.en.txt"], ("de", "en")),
        (["x.pt_BR", "x.zh-Hans"], ("pt_BR", "zh-Hans")),
        (["left.txt", "right.txt"], UNNAMED),
        (["a.de", "b.de"], UNNAMED),
        (["train.src", "train.tgt"], UNNAMED),
        (["de-en.tsv"], ("de", "en")),
        (["opus.de-fr.tsv.gz"], ("de", "fr")),
        (["zh-cn.tsv"], UNNAMED),
        (["not-there/cmn.txt"], UNNAMED),
        ([".gz"], UNNAMED),
    ],
)
def test_languages_from_file_names(files: list[str], codes: tuple[str, str]) -> None:
    assert guess_languages([Path(file) for file in files]) == codes


def test_columns_say_which_language_is_the_source() -> None:
    assert guess_languages([Path("de-en.tsv")], (2, 1)) == ("en", "de")
    assert guess_languages([Path("de-en.tsv")], (1, 3)) == ("de", "target")


def write(path: Path, first: list[str], second: list[str], *more: str) -> Path:
    """A tab-separated file."""
    path.write_text("".join("\t".join((*row, *more)) + "\n" for row in zip(first, second)), encoding="utf-8")
    return path


ATTRIBUTION = "CC-BY 2.0 (France) Attribution: tatoeba.org #1 (CK) & #2 (Martha)"


def test_a_file_of_tatoeba_has_english_first(tmp_path: Path) -> None:
    assert guess_languages([write(tmp_path / "cmn.txt", ENGLISH, CHINESE, ATTRIBUTION)]) == ("en", "cmn")
    path = write(tmp_path / "deu.txt", ENGLISH, GERMAN, ATTRIBUTION)
    assert guess_languages([path]) == ("en", "deu")
    assert guess_languages([path], (2, 1)) == ("deu", "en")
    packed = tmp_path / "deu.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert guess_languages([packed]) == ("en", "deu")


def test_elsewhere_the_script_tells_the_column(tmp_path: Path) -> None:
    assert guess_languages([write(tmp_path / "chinese.txt", ENGLISH, CHINESE)]) == ("source", "zh")
    assert guess_languages([write(tmp_path / "cmn.tsv", CHINESE, ENGLISH)]) == ("cmn", "target")
    assert guess_languages([write(tmp_path / "deu.txt", ENGLISH, GERMAN)]) == UNNAMED
    assert guess_languages([write(tmp_path / "jpn.txt", ENGLISH, CHINESE)]) == UNNAMED
    (tmp_path / "tha.txt").write_bytes(b"\xff\n")
    assert guess_languages([tmp_path / "tha.txt"]) == UNNAMED


def test_doubts_name_the_script_and_the_override() -> None:
    assert doubts(("en", "zh"), (ENGLISH, CHINESE)) == []
    assert doubts(UNNAMED, (CHINESE, ENGLISH)) == [], "nothing depends on the language of the source"
    (unnamed,) = doubts(UNNAMED, (ENGLISH, CHINESE))
    assert unnamed == (
        "The target text is in Han script: BLEU treats it as zh. Override: data.target=CODE, or later "
        "languages=[SOURCE,TARGET] of nmt.evaluate."
    )
    (wrong,) = doubts(("en", "zh"), (ENGLISH, JAPANESE))
    assert wrong.startswith("The target text is in Japanese script, which does not fit data.target=zh: BLEU treats")
    swapped = doubts(("en", "zh"), (CHINESE, ENGLISH))
    assert swapped[0] == (
        "The source text is in Han script, which does not fit data.source=en. Are the two sides swapped? Override: "
        "data.source=CODE."
    )
    assert "is in Latin script, which does not fit data.target=zh: BLEU treats it as und" in swapped[1]
