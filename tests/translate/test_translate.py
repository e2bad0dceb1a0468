"""Lines in, lines out: as many, in order, from files and pipes, with what was looked at beside them."""

import gzip
import io
import itertools
import re
import sys
from pathlib import Path

import pytest

from nmt.build.open import TranslatorRequest
from nmt.build.requests import read
from nmt.config.composition import compose
from nmt.config.quotes import quote
from nmt.runs.run import Run
from tests.small import (
    call,
    copied,
    pairs,
    snapshot,
    translation_of,
    words,
    write_lines,
)

Capture = pytest.CaptureFixture[str]

# What may stand in a file; every one is a line of its own.
LINES = [
    "eins zwei",
    "",
    "   ",
    "drei\tvier",
    "rot\u2028blau",
    "fünf\rsechs",
    "\u00a0sieben\u00a0acht",
    "\u200bneun\u200b",
    "数据 🙂 \u2581",
    "\t",
    "\u2028",
    "\x0c",
    "blau",
]


def translate(run: Path | str, sentences: list[str], here: Path, *more: str) -> list[str]:
    """The lines of the translated file."""
    write_lines(here / "in.txt", sentences)
    assert call("translate", f"run={run}", f"input={here / 'in.txt'}", f"output={here / 'out.txt'}", *more) == 0
    text = (here / "out.txt").read_bytes().decode("utf-8")
    assert text.endswith("\n") or not text
    return text.split("\n")[:-1]


def test_words_that_training_never_had_are_named_once(trained: Path, here: Path, capfd: Capture) -> None:
    assert len(translate(trained, ["zwei Katzen", "drei", "Katzen\x1b[2J und 77 Hunde"], here)) == 3
    expected = "note: 3 different words are not in the training text, in 2 lines: Katzen, J, Hunde. "
    assert capfd.readouterr().err.count(expected) == 1
    run = copied(trained, here / "old")
    (run / "words.safetensors").unlink()
    assert len(translate(run, ["zwei Katzen"], here)) == 1
    assert capfd.readouterr().err == "", "a run without the words says nothing"


def test_a_file_becomes_a_file(trained: Path, here: Path, capfd: Capture) -> None:
    sentences = [sentence for sentence, _ in pairs(100)]  # of the training text: they have been learnt
    run = snapshot(trained)
    assert translate(trained, sentences, here) == [translation_of(sentence) for sentence in sentences]
    assert sorted(path.name for path in here.iterdir()) == ["in.txt", "out.txt"]
    assert snapshot(trained) == run
    assert capfd.readouterr() == ("", "")
    assert (here / "out.txt").stat().st_mode & 0o777 == (here / "in.txt").stat().st_mode & 0o777


def test_standard_input_becomes_standard_output(
    trained: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    expected = translate(trained, LINES, here)
    data = (here / "in.txt").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    capfd.readouterr()
    assert call("translate", f"run={trained}") == 0
    out, err = capfd.readouterr()
    assert out.split("\n") == [*expected, ""]
    further = [line for line in err.splitlines() if not line.startswith("warning: standard input: ")]
    unseen = "note: 2 different words are not in the training text: 数, 据. The model guesses them from their parts."
    assert further == [unseen]


def test_lines_unlike_the_training_text_are_said_once_and_translated_as_ever(
    trained: Path, here: Path, capfd: Capture
) -> None:
    sentences = [sentence for sentence, _ in pairs(20, seed=9)]
    expected = translate(trained, sentences, here)
    assert "warning" not in capfd.readouterr().err
    assert translate(trained, [*sentences, "Eins zwei. Drei vier. Rot?"], here)[:-1] == expected
    err = capfd.readouterr().err
    assert err.count("warning") == err.count("1 line has several sentences (line 21).") == 1
    assert len(translate(trained, ["1", "00:00:02,000 --> 00:00:03,000", "eins"], here)) == 3
    assert capfd.readouterr().err.count("SRT") == 1
    assert call("translate", f"run={trained}", f"input={here / 'in.txt'}", "scores=true") == 0
    assert "translation ||| score ||| log-probability" in capfd.readouterr().err


def test_the_order_is_that_of_the_input_whatever_the_batches(trained: Path, here: Path) -> None:
    sentences = [sentence for sentence, _ in pairs(60, seed=9)]
    whole = translate(trained, sentences, here)
    assert translate(trained, sentences, here, "batch_sentences=1") == whole
    assert translate(trained, sentences[::-1], here, "batch_sentences=7") == whole[::-1]


def test_a_large_file_is_taken_a_part_at_a_time(trained: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [sentence for sentence, _ in pairs(50, seed=9)]
    whole = translate(trained, sentences, here)
    monkeypatch.setattr("nmt.translate.work.CHUNK", 8)
    assert translate(trained, sentences, here) == whole


def test_lines_before_a_broken_one_are_answered(
    trained: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"eins\nzwei\nf\xfcnf\nrot\n")))
    assert call("translate", f"run={trained}") == 1
    out, err = capfd.readouterr()
    assert out == "one\ntwo\n"
    assert err.startswith("nmt.translate: standard input, line 3: not valid UTF-8")
    monkeypatch.setattr(sys, "stdin", None)
    assert call("translate", f"run={trained}") == 1
    assert "There is no standard input. Name a file" in capfd.readouterr().err


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_line_has_its_line(end: str, trained: Path, here: Path) -> None:
    text = end.join(LINES) + end
    (here / "in.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert call("translate", f"run={trained}", f"input={here / 'in.txt'}", f"output={here / 'out.txt'}") == 0
    out = (here / "out.txt").read_bytes().decode("utf-8").split("\n")
    assert len(out) == len(LINES) + 1
    for line, translated in zip(LINES, out, strict=False):
        assert bool(translated.strip()) == bool(line.strip()), repr(line)
    assert out[0] == "one two", "the mark at the beginning is no part of the first line"
    assert out[12] == "blue", "the carriage return is no part of the last line"


def test_a_shortlist_keeps_what_the_text_needs(trained: Path, second: Path, here: Path) -> None:
    sentences = [sentence for sentence, _ in pairs(60, seed=9)]
    whole = translate(trained, [*sentences, "", "数据"], here)
    shortened = translate(trained, [*sentences, "", "数据"], here, "shortlist=5")
    assert shortened[:-1] == whole[:-1]
    together = translate(f"[{trained},{second}]", sentences, here)
    assert translate(f"[{trained},{second}]", sentences, here, "shortlist=5") == together


@pytest.mark.parametrize(
    ("count", "message"),
    [("101", "must be from 1 to 100"), ("-1", "shortlist=-1: must be at least 0"), ("many", "shortlist")],
)
def test_a_shortlist_is_a_number(count: str, message: str, trained: Path, here: Path, capfd: Capture) -> None:
    write_lines(here / "in.txt", ["eins"])
    assert call("translate", f"run={trained}", f"input={here / 'in.txt'}", f"shortlist={count}") == 1
    assert message in capfd.readouterr().err


def test_a_run_without_a_lexicon_says_so(trained: Path, here: Path, capfd: Capture) -> None:
    run = copied(trained, here / "old")
    (run / "lexicon.safetensors").unlink()
    assert translate(run, ["eins"], here) == ["one"]
    assert call("translate", f"run={run}", f"input={here / 'in.txt'}", "shortlist=5") == 1
    assert "lexicon.safetensors is missing" in capfd.readouterr().err


def test_no_line_end_at_the_end_and_no_lines_at_all(trained: Path, here: Path) -> None:
    (here / "in.txt").write_text("eins\nzwei", encoding="utf-8")
    assert call("translate", f"run={trained}", f"input={here / 'in.txt'}", f"output={here / 'out.txt'}") == 0
    assert (here / "out.txt").read_text(encoding="utf-8") == "one\ntwo\n"
    assert translate(trained, [], here) == []


def test_gzip_is_read(trained: Path, here: Path) -> None:
    with gzip.open(here / "in.gz", "wt", encoding="utf-8") as file:
        file.write("eins\nzwei\n")
    assert call("translate", f"run={trained}", f"input={here / 'in.gz'}", f"output={here / 'out.txt'}") == 0
    assert (here / "out.txt").read_text(encoding="utf-8") == "one\ntwo\n"


def test_a_line_too_long_is_split_or_cut_and_named(trained: Path, here: Path, capfd: Capture) -> None:
    sentences = ["eins zwei", "eins zwei drei vier fünf sechs sieben acht neun null", "drei"]
    out = translate(trained, sentences, here, "max_source_length=4", "search.beam_size=2")
    err = capfd.readouterr().err
    assert re.fullmatch(r"warning: line 2 has \d+ pieces, more than max_source_length=4. It is .* parts\.\n", err)
    assert out[1].split()[:3] == ["one", "two", "three"]
    assert len(out[1].split()) >= 9
    assert (out[0], out[2]) == ("one two", "three")
    cut = translate(trained, sentences, here, "max_source_length=4", "long_lines=truncate")
    assert "line 2" in capfd.readouterr().err
    assert out[1].startswith(cut[1])
    assert (cut[0], cut[2]) == ("one two", "three")


def test_the_number_of_a_long_line_counts_through_the_file(
    trained: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setattr("nmt.translate.work.CHUNK", 2)
    translate(trained, ["eins"] * 6 + ["eins zwei drei vier fünf"], here, "max_source_length=4")
    assert "line 7 " in capfd.readouterr().err


def test_a_line_that_goes_on_where_the_location_score_ends_is_named(text: Path, here: Path, capfd: Capture) -> None:
    line = ["attention/score=location", "attention.score.positions=4", "trainer.steps=1", "name=short"]
    assert call("train", *words(text, here, *line)) == 0
    assert "The attention sees only the first 4 pieces" in capfd.readouterr().err
    sentences = ["eins", "eins zwei drei vier fünf"]
    translate(here / "short", sentences, here)
    err = capfd.readouterr().err
    hardly = r"note: This model had 1 update and validation BLEU 0\.00: its translations .*\n"
    ends = r"warning: line 2 is longer than the 4 pieces .* max_source_length=3 long_lines=split\n"
    assert re.fullmatch(hardly + ends, err)
    translate(here / "short", sentences, here, "max_source_length=3")  # what the message says to give
    assert "positions" not in capfd.readouterr().err


def test_a_penalty_on_weights_that_are_not_there_is_said(unattentive: Path, here: Path, capfd: Capture) -> None:
    translate(unattentive, ["eins"], here, "search.coverage_penalty=0.2")
    said = "decoder=none has no attention, so these settings have no effect: search.coverage_penalty=0.2.\n"
    first, note = capfd.readouterr().err.splitlines(keepends=True)
    assert first == said
    assert note.startswith("note: This model had 2 updates and validation BLEU "), "it is hardly trained"


def test_the_training_text_says_how_long_a_translation_may_be(trained: Path, second: Path, here: Path) -> None:
    def ratio(*more: str) -> float:
        overrides = quote([*more, "device=cpu"])
        return read(TranslatorRequest, compose("translate", overrides), overrides).open().length_ratio

    run = copied(trained, here)
    assert ratio(f"run={run}") == Run(run).facts()["length_ratio"] == 1
    Run(run).note(length_ratio=1.7)
    assert ratio(f"run={run}") == 1.7
    assert ratio(f"run=[{second},{run}]") == 1.7, "the members' longest"
    assert ratio(f"run={run}", "length_ratio=0.5") == 0.5


def test_an_endless_word_is_split(trained: Path, here: Path) -> None:
    (out,) = translate(trained, ["x" * 50], here, "max_source_length=10", "extra_length=5", "length_ratio=0")
    assert out


# Searches


def test_nbest_lists_have_scores(trained: Path, here: Path) -> None:
    out = translate(trained, ["eins zwei", "", "rot"], here, "search.nbest=3", "search.beam_size=4")
    rows = [re.fullmatch(r"(\d+) \|\|\| (.*) \|\|\| (-?\d+\.\d{4}) \|\|\| (-?\d+\.\d{4})", line) for line in out]
    assert all(rows)
    found = [(int(row[1]), row[2], float(row[3]), float(row[4])) for row in rows if row]
    assert [number for number, *_ in found] == [1, 1, 1, 2, 3, 3, 3]
    assert found[0][1] == "one two"
    assert found[3] == (2, "", 0.0, 0.0)
    for first, second in itertools.pairwise(found):
        assert first[0] != second[0] or (first[2] >= second[2] and first[1] != second[1])
    # Wu et al. 2016, eq. 14: log P divided by ((5 + |Y|) / 6)^1, |Y| the pieces with the end of sentence.
    assert any(found[0][2] == pytest.approx(found[0][3] / ((5 + length) / 6), abs=1e-4) for length in range(2, 20))


def test_searches_can_be_chosen(trained: Path, here: Path) -> None:
    sentences = [sentence for sentence, _ in pairs(20, seed=9)]
    greedy = translate(trained, sentences, here, "search=greedy")
    assert translate(trained, sentences, here, "search.beam_size=1") == greedy
    draws = [
        translate(trained, sentences, here, "search=sampling", "search.temperature=2.5", f"search.seed={seed}")
        for seed in (1, 1, 2)
    ]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]
    assert draws[0] != greedy
    cold = ["search=sampling", "search.top_k=1", "search.nbest=2"]
    rows = [line.split(" ||| ") for line in translate(trained, sentences, here, *cold)]
    assert [row[1] for row in rows] == greedy, "two samples of one text are one translation"


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_attention_can_be_pinned(precision: str, trained: Path, unattentive: Path, here: Path, capfd: Capture) -> None:
    sentences, links = ["eins zwei drei", "rot haus"], here / "links.txt"
    words = [f"alignments={links}", f"precision={precision}"]
    free = translate(trained, sentences, here, *words)
    assert links.read_text() != ""
    pinned = translate(trained, sentences, here, *words, f"slots={[0] * 30}".replace(" ", ""))
    assert pinned != free
    for line in links.read_text().splitlines():
        assert {link.partition("-")[0] for link in line.split()} == {"0"}
    assert translate(trained, sentences, here, *words, "slots=[null,null]") == free
    later = [line.split()[:1] for line in translate(trained, sentences, here, *words, "slots=[null,0]")]
    assert later == [line.split()[:1] for line in free], "the first word stays"
    assert len(translate(trained, sentences, here, *words, "slots=[null,0]", "keep_words=false")) == len(free)
    assert call("translate", f"run={trained}", "slots=[]", f"input={here / 'in.txt'}") == 1
    assert "slots=[]: must name the slots of one step at least" in capfd.readouterr().err
    assert call("translate", f"run={trained}", "slots=[[a]]", f"input={here / 'in.txt'}") == 1
    assert "slots=[['a']]: step 0 must have a source position from 0" in capfd.readouterr().err
    assert call("translate", f"run={unattentive}", "slots=[0]", f"input={here / 'in.txt'}") == 1
    assert "slots= restricts the attention, but this run has none (decoder=none)" in capfd.readouterr().err


def test_the_search_of_the_run_is_the_default(trained: Path, here: Path) -> None:
    run = copied(trained, here)
    config = Run(run).config()
    config.search.nbest, config.search.beam_size = 2, 3
    Run(run).write_config(config)
    assert len(translate(run, ["eins"], here)) == 2
    assert len(translate(run, ["eins"], here, "search.nbest=1")) == 1
    assert len(translate(run, ["eins"], here, "search.nbest=3")) == 3
    assert len(translate(run, ["eins"], here, "search=greedy")) == 1


def test_the_last_checkpoint_can_be_taken(trained: Path, here: Path) -> None:
    run = copied(trained, here)
    (run / "best.safetensors").unlink()
    assert translate(run, ["eins zwei"], here, "checkpoint=last") == ["one two"]


# Ensembles


def test_an_ensemble_votes(trained: Path, second: Path, here: Path) -> None:
    sentences = [sentence for sentence, _ in pairs(30)]
    alone = translate(trained, sentences, here, "scores=true")
    twice = translate(f"[{trained},{trained}]", sentences, here, "scores=true")
    score = re.compile(r"-?\d+\.\d{4}")
    assert [score.sub("", line) for line in twice] == [score.sub("", line) for line in alone]
    for ours, theirs in zip(alone, twice, strict=True):
        assert [float(number) for number in score.findall(ours)] == pytest.approx(
            [float(number) for number in score.findall(theirs)], abs=2e-4
        )
    together = translate(f"[{trained},{second}]", sentences, here, f"alignments={here / 'links'}")
    assert together == [translation_of(sentence) for sentence in sentences]
    assert (here / "links").read_text(encoding="utf-8").count("\n") == 30


def test_members_with_different_tokenizers_are_refused(trained: Path, text: Path, here: Path, capfd: Capture) -> None:
    line = words(text, here, "name=other", "trainer.steps=1", "tokenizer=char")
    assert call("train", *line) == 0
    capfd.readouterr()
    write_lines(here / "in.txt", ["eins"])
    runs = f"run=[{trained},{here / 'other'}]"
    assert call("translate", runs, f"input={here / 'in.txt'}", f"output={here / 'out.txt'}") == 1
    err = capfd.readouterr().err
    assert "different tokenizers" in err
    assert str(here / "other") in err
    assert not (here / "out.txt").exists()


def test_tags_stand_around_the_words_linked_to_theirs(trained: Path, unattentive: Path, here: Path) -> None:
    sentences = ["eins <b>zwei drei</b> vier", "<p>rot</p><p><i>blau</i> und rot</p>", "<br>", "", "drei & vier"]
    expected = ["one <b>two three</b> four", "<p>red</p><p><i>blue</i> and red</p>", "<br>", ""]
    assert translate(trained, sentences, here, "tags=html")[:4] == expected
    untagged = [sentence for sentence, _ in pairs(50, seed=9)]
    assert translate(trained, untagged, here, "tags=html") == translate(trained, untagged, here, "precision=float32")
    (pinned,) = translate(trained, ["<i></i>eins <b>zwei</b> drei"], here, "tags=html", "slots=[null,null,0]")
    assert "".join(re.split(r"<.*?>", pinned)).startswith("one two"), "words before a pin are those without tags"
    (line,) = translate(unattentive, ["eins <b>zwei</b> drei"], here, "tags=html")
    assert re.findall("<[^>]*>", line) == ["<b>", "</b>"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["format=jsonl"], "tags=html is for text without prefixes. Leave out format= and prefix=."),
        (["prefix=in.txt"], "tags=html is for text without prefixes. Leave out format= and prefix=."),
        (["search.nbest=2"], "tags=html is for one translation a line. Leave search.nbest= out."),
    ],
)
def test_tags_are_for_one_text_a_line(more: list[str], message: str, trained: Path, here: Path, capfd: Capture) -> None:
    write_lines(here / "in.txt", ["eins"])
    line = [f"run={trained}", f"input={here / 'in.txt'}", f"output={here / 'out.txt'}", "tags=html"]
    assert call("translate", *line, *(word.replace("in.txt", str(here / "in.txt")) for word in more)) == 1
    assert message in capfd.readouterr().err
    assert not (here / "out.txt").exists()
