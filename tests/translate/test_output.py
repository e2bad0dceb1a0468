"""What `nmt.translate` writes beside text: formats, links, heatmaps; and translations that begin with a prefix."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.small import (
    call,
    pairs,
    write_lines,
)
from tests.translate.test_translate import LINES, Capture, translate

# What was looked at


def test_alignments_are_links_between_words(trained: Path, here: Path) -> None:
    sentences = ["eins zwei drei", "", "rot und blau", "vier"]
    out = translate(trained, sentences, here, f"alignments={here / 'links'}")
    links = (here / "links").read_text(encoding="utf-8").split("\n")
    assert len(links) == 5
    assert links[1] == ""
    for sentence, translation, line in zip(sentences, out, links, strict=False):
        found = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert bool(found) == bool(sentence)
        for source, target in found:
            assert 0 <= source < len(sentence.split())
            assert 0 <= target < len(translation.split())
    shifted = translate(trained, sentences, here, f"alignments={here / 'shifted'}", "shift=1", "head=0")
    assert shifted == out
    assert (here / "shifted").read_text(encoding="utf-8").count("\n") == 4


def test_heatmaps_are_a_picture_a_sentence(trained: Path, here: Path) -> None:
    translate(trained, ["eins zwei", "", "rot"], here, f"heatmaps={here / 'new' / 'pictures'}")
    pictures = sorted((here / "new" / "pictures").iterdir())
    assert [path.name for path in pictures] == ["00001.png", "00003.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)


def test_heatmaps_are_vectors_if_asked_the_same_each_time(trained: Path, here: Path) -> None:
    begins = {"svg": b"<?xml", "pdf": b"%PDF"}
    for kind, begin in begins.items():
        for folder in (here / f"{kind}1", here / f"{kind}2"):
            translate(trained, ["eins zwei"], here, f"heatmaps={folder}", f"heatmap_format={kind}")
        first, second = ((here / f"{kind}{number}" / f"00001.{kind}").read_bytes() for number in (1, 2))
        assert first.startswith(begin)
        assert first == second


# Formats


@pytest.mark.parametrize("form", ["text", "tsv", "jsonl"])
@pytest.mark.parametrize("nbest", [1, 3])
def test_every_format_has_a_record_for_every_line(form: str, nbest: int, trained: Path, here: Path) -> None:
    out = translate(trained, LINES, here, f"format={form}", f"search.nbest={nbest}", "scores=true")
    plain = translate(trained, LINES, here)
    records = [json.loads(line) for line in translate(trained, LINES, here, "format=jsonl", f"search.nbest={nbest}")]
    counts = Counter(record["line"] for record in records)
    assert len(out) == len(records)
    assert {counts[number] for number, line in enumerate(LINES, 1) if not line.strip()} == {1}
    for number, (line, expected) in enumerate(zip(LINES, plain, strict=True)):
        texts = [record["translation"].split() for record in records if record["line"] == number + 1]
        assert 1 <= len(texts) <= nbest
        assert not any(text in texts[:at] for at, text in enumerate(texts)), "different texts"
        for rank in range(1, counts[number + 1] + 1):
            record = out.pop(0)
            assert len(record.splitlines()) == 1, "whatever a reader takes for the end of a line"
            if form == "tsv":
                source, translation, *_ = columns = record.split("\t")
                assert len(columns) == 6
                assert source.split() == line.split()
            elif form == "jsonl":
                values = json.loads(record)
                assert (values["line"], values["rank"], values["source"]) == (number + 1, rank, line)
                translation = values["translation"]
            else:
                translation = record.split(" ||| ")[-3]
            assert rank > 1 or translation.split() == expected.split()


def test_the_formats_agree(trained: Path, here: Path) -> None:
    sentences = ["eins zwei drei", "", "rot und blau"]
    links = here / "links"
    (first, second, third), tsv, records = (
        [line.split(" ||| ") for line in translate(trained, sentences, here, "scores=true", f"alignments={links}")],
        [line.split("\t") for line in translate(trained, sentences, here, "format=tsv")],
        [json.loads(line) for line in translate(trained, sentences, here, "format=jsonl", "weights=true")],
    )
    assert second == ["", "0.0000", "0.0000"]
    assert records[1]["weights"] is None
    aligned = links.read_text(encoding="utf-8").splitlines()
    for text, row, record, line in zip((first, third), tsv[::2], records[::2], aligned[::2], strict=True):
        assert [text[0], float(text[1])] == [row[1], pytest.approx(float(row[3]), abs=1e-4)]
        assert float(text[2]) == pytest.approx(float(row[2]), abs=1e-4)
        assert [record["source"], record["translation"]] == row[:2]
        assert [record["log_prob"], record["score"]] == [float(row[2]), float(row[3])]
        assert " ".join(record["pieces"]) == row[4]
        assert " ".join(f"{source}-{target}" for source, target in record["links"]) == row[5] == line
        [head] = record["weights"]
        assert len(head) == len(record["pieces"])
        for weights in head:
            assert len(weights) == len(record["source_pieces"])
            assert sum(weights) == pytest.approx(1, abs=1e-3)


def test_formats_without_attention_and_formats_that_are_not(unattentive: Path, here: Path, capfd: Capture) -> None:
    [line] = translate(unattentive, ["eins"], here, "format=tsv")
    assert line.endswith("\t")
    [line] = translate(unattentive, ["eins"], here, "format=jsonl")
    assert json.loads(line)["links"] is None
    for settings, message in (
        (["format=csv"], "format=csv: must be text, tsv, jsonl, html or json."),
        (["weights=true"], "weights=true needs format=jsonl."),
        (["weights=true", "format=jsonl"], "weights=true needs attention"),
    ):
        assert call("translate", f"run={unattentive}", f"input={here / 'in.txt'}", *settings) == 1
        assert message in capfd.readouterr().err


# Prefixes


@pytest.mark.parametrize("search", [["search=greedy"], ["search.beam_size=4", "search.nbest=2"], ["search=sampling"],
                                    ["shortlist=2"]], ids=lambda words: words[0])  # fmt: skip
@pytest.mark.parametrize("members", [1, 2])
def test_translations_begin_with_their_prefixes(
    search: list[str], members: int, trained: Path, second: Path, here: Path
) -> None:
    run = f"[{trained},{second}]" if members == 2 else trained
    rows = pairs(30, seed=9)
    # Other words than the source's, parts of words, whole words, and now and then nothing.
    prefixes = ["", "seven o", "ze", "blue ", "x", "数", *(target[: number % 7] for number, (_, target) in
                                                          enumerate(rows[6:]))]  # fmt: skip
    write_lines(here / "prefixes.txt", prefixes)
    sentences = [source for source, _ in rows]
    line = [*search, "format=jsonl", f"prefix={here / 'prefixes.txt'}"]
    records = [json.loads(record) for record in translate(run, sentences, here, *line)]
    assert len(records) == 30 * (2 if "search.nbest=2" in search else 1)
    for record in records:
        assert record["translation"].startswith(prefixes[record["line"] - 1])
    free = [json.loads(record) for record in translate(run, sentences, here, *search, "format=jsonl")]
    if search != ["search=sampling"]:
        for record, other in zip(records, free, strict=True):
            if not prefixes[record["line"] - 1]:
                assert record["translation"] == other["translation"]
                assert record["log_prob"] == pytest.approx(other["log_prob"], abs=1e-3)
    if search == ["search=greedy"]:
        # What the model would have said anyway, it says at the same probability.
        for record in records[6:]:
            expected = free[record["line"] - 1]
            if record["translation"] == expected["translation"] and record["pieces"] == expected["pieces"]:
                assert record["log_prob"] == pytest.approx(expected["log_prob"], abs=1e-3)


def test_a_prefix_is_a_line_for_each_line(trained: Path, here: Path, capfd: Capture) -> None:
    prefixes = here / "prefixes.txt"
    for lines, message in (
        (["three", ""], "prefixes.txt has 2 lines, but the input has more. Give one line per input line"),
        (["three", "", "", "x"], "prefixes.txt has more lines than the input, which has 3."),
    ):
        write_lines(prefixes, lines)
        write_lines(here / "in.txt", ["eins zwei", "", "rot"])
        place = [f"input={here / 'in.txt'}", f"output={here / 'out.txt'}"]
        assert call("translate", f"run={trained}", *place, f"prefix={prefixes}") == 1
        assert message in capfd.readouterr().err
        assert not (here / "out.txt").exists()
        (here / "out.txt.part").unlink(missing_ok=True)  # the lines before the mistake
    write_lines(prefixes, ["three", "four", ""])
    out = translate(trained, ["eins zwei", "", "rot"], here, f"prefix={prefixes}")
    assert out[0].startswith("three")
    assert out[1:] == ["", "red"], "an empty line stays empty"
    write_lines(prefixes, ["ei\rns", "", ""])
    assert call("translate", f"run={trained}", f"input={here / 'in.txt'}", f"prefix={prefixes}") == 1
    assert r"prefix of line 1: 'ei\rns' cannot begin a translation" in capfd.readouterr().err


def test_a_long_line_in_parts_begins_with_its_prefix(trained: Path, here: Path) -> None:
    write_lines(here / "prefixes.txt", ["seven eight"])
    [out] = translate(trained, ["eins zwei drei vier"], here, "max_source_length=2", f"prefix={here / 'prefixes.txt'}")
    assert out.startswith("seven eight")
    assert len(out.split()) > 2


def test_a_glossary_is_obeyed_and_reported(trained: Path, here: Path, capfd: Capture) -> None:
    sentences = ["eins zwei drei", "", "rot {0} und blau", "vier Eins eins"]
    (here / "terms.tsv").write_text("# numbers\neins\tseven | eight\nzwei drei\tred house\n", encoding="utf-8")
    words = [f"glossary={here / 'terms.tsv'}", "keep=placeholders", f"terms={here / 'report.tsv'}"]
    out = translate(trained, sentences, here, *words)
    report = [line.split("\t") for line in (here / "report.tsv").read_text(encoding="utf-8").split("\n")]
    assert report[0] == ["line", "source", "target", "used", "characters", "reason"]
    assert [row[:2] for row in report[1:-1]] == [
        ["1", "eins"], ["1", "zwei drei"], ["3", "{0}"], ["4", "Eins"], ["4", "eins"]
    ]  # fmt: skip
    for number, _, target, used, characters, _ in report[1:-1]:
        begin, end = map(int, characters.split("-"))
        assert (used, out[int(number) - 1][begin:end]) == ("yes", target)
    assert out[1] == ""
    assert out[2].count("{0}") == 1
    capfd.readouterr()
    for more, message in (
        (["search=greedy", *words[:1]], "need beam search"),
        (words[2:], "Give glossary=FILE or keep=placeholders as well."),
        ([*words, "resume=auto"], "cannot be combined with resume="),
        (["glossary=missing.tsv"], "missing.tsv"),
        (["keep=names"], "keep=names: must be placeholders or numbers"),
    ):
        line = (f"run={trained}", f"input={here / 'in.txt'}", f"output={here / 'new.txt'}", *more)
        assert call("translate", *line) == 1
        assert message in capfd.readouterr().err
        assert not (here / "new.txt").exists()


def test_a_model_without_attention_is_told_once_of_misplaced_terms(
    unattentive: Path, here: Path, capfd: Capture
) -> None:
    (here / "terms.tsv").write_text("eins\tseven\n", encoding="utf-8")
    out = translate(unattentive, ["eins zwei", "eins"], here, f"glossary={here / 'terms.tsv'}")
    assert all("seven" in line.lower() for line in out)
    assert capfd.readouterr().err.count("decoder=none has no attention") == 1


def test_a_memory_answers_exact_matches_and_every_format_marks_them(trained: Path, here: Path, capfd: Capture) -> None:
    """With its links; a prefix asks for something else; other lines are as without the memory."""
    sentences = ["eins zwei drei", "", "rot <i>", "vier"]
    plain = translate(trained, sentences, here)
    (here / "memory.tsv").write_text("eins  zwei drei\tone & seven\nrot <i>\tred <b>\n", encoding="utf-8")
    memory = f"memory={here / 'memory.tsv'}"
    capfd.readouterr()
    assert translate(trained, sentences, here, memory) == ["one & seven", "", "red <b>", plain[3]]
    assert "from memory=, as they stand there: 2." in capfd.readouterr().err
    rows = [row.split("\t") for row in translate(trained, sentences, here, memory, "format=tsv")]
    assert [row[-1] for row in rows] == ["yes", "no", "yes", "no"]
    assert rows[0][4] != ""
    assert len(rows[0][5].split()) >= 3, "a memory's translation has links"
    records = [json.loads(row) for row in translate(trained, sentences, here, memory, "format=jsonl", "search.nbest=2")]
    assert [(each["line"], each["rank"]) for each in records if each["memory"]] == [(1, 1), (3, 1)]
    documents = [
        json.loads(row) for row in translate(trained, sentences, here, memory, "format=json", "include=[beam]")
    ]
    assert [each["hypotheses"][0]["remembered"] for each in documents] == [True, False, True, False]
    assert (documents[0]["beam"], documents[3]["beam"]["size"]) == (None, 5)
    tagged = translate(trained, ["<p>eins <b>zwei drei</b></p>", "<b>vier</b>"], here, memory, "tags=html")
    assert re.sub("</?[pb]>", "", tagged[0]) == "one &amp; seven"
    write_lines(here / "prefixes.txt", ["eight", "", "", ""])
    assert translate(trained, sentences, here, memory, f"prefix={here / 'prefixes.txt'}")[0].startswith("eight")
    (here / "memory.tmx").write_text("<tmx>", encoding="utf-8")
    line = (f"run={trained}", f"input={here / 'in.txt'}", f"output={here / 'new.txt'}", f"memory={here / 'memory.tmx'}")
    assert call("translate", *line) == 1
    assert "memory.tmx: not a valid .tmx file" in capfd.readouterr().err
    assert not (here / "new.txt").exists()
