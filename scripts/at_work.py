"""Measures tags, terms, placeholders and doubts of a run on a test set, and the time that terms take.

    python scripts/at_work.py GATE,... RUN SOURCE REFERENCE [--words SOURCE REFERENCE --links FILE] [--lines N]

GATE: tags, terms, placeholders, doubts, speed, nestings (which does not open the run). Text is plain or .gz, a sentence
a line. `--words` has the same sentences with spaces between words, as the links of `--links` count them (Pharaoh
format; 0p0 is a possible link).
docs/at-work.md has the figures.
"""

import argparse
import gzip
import html
import random
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

# As a plain script from wherever it lies: the package need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import sacrebleu

import nmt
from nmt.alignment.error_rate import against_gold
from nmt.alignment.tag_projection import LinkedText, project
from nmt.alignment.units import spelled
from nmt.alignment.word_weights import SHIFTS, word_weights
from nmt.alignment.word_weights import best_links as best
from nmt.api import RunTranslator
from nmt.links import GoldLinks, parse_links
from nmt.text.html_text import escape, read_html
from nmt.text.tags import Segment, Tag
from nmt.translation.glossary import Keep


class Text(NamedTuple):
    """A test set: sentences, their words, and gold or silver links between these."""

    source: list[str]
    reference: list[str]
    words: tuple[list[list[str]], list[list[str]]]
    links: list[GoldLinks]


def lines(path: Path) -> list[str]:
    """The lines of a file."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode("utf-8").split("\n")[:-1]


def words_at(text: str, words: list[str]) -> list[int]:
    """The number of the word at each character; -1 for none."""
    members = spelled(text, [(at, at + 1) for at in range(len(text))], words).members
    return [int(row.argmax()) if row.any() else -1 for row in members]


def bleu(texts: Sequence[str], references: Sequence[str]) -> float:
    """Case-sensitive BLEU."""
    return float(sacrebleu.corpus_bleu(texts, [references]).score)


def tags(run: str, text: Text) -> None:
    """One pair of tags a sentence, around one to three words of which one has a sure link."""
    translator = nmt.load(run, "threads=1", "device=cpu")
    draws = random.Random(1)
    spans, inside = [], []
    for row, source in enumerate(text.source):
        places = [match.span() for match in re.finditer(r"\w(?:\S*\w)?", source)]
        numbers = words_at(source, text.words[0][row])
        sure = {one for one, _ in text.links[row].sure}
        first = draws.choice([at for at, (begin, end) in enumerate(places) if sure & {*numbers[begin:end]}])
        last = min(first + draws.randint(0, 2), len(places) - 1)
        spans.append((places[first][0], places[last][1]))
        inside.append({*numbers[slice(*spans[-1])]} - {-1})
    opened = translator._translator
    forced = opened.force(text.source, text.reference)
    units = [
        (spelled(one.source, one.source_spans, ours), spelled(one.text, one.spans, theirs))
        for one, ours, theirs in zip(forced, *text.words, strict=True)
    ]
    for head in opened.heads.selections:
        rates = [
            100 * against_gold([best(word_weights(one, head, shift, of)) for one, of in zip(forced, units)],
                               text.links).aer
            for shift in SHIFTS
        ]  # fmt: skip
        print(f"  AER of head {head}: {rates[0]:.1f} % with shift 0, {rates[1]:.1f} % with shift 1")
    found = total = foreign = marked = whole = 0
    for row, one in enumerate(forced):
        (tag,) = project(LinkedText.of(one, translator._linker), [Tag(*spans[row], "<b>", "</b>")]).tags
        got = {*words_at(text.reference[row], text.words[1][row])[tag.start : tag.end]} - {-1}
        right = {other for one, other in text.links[row].sure if one in inside[row]}
        elsewhere = {other for one, other in text.links[row].sure if one not in inside[row]} - right
        found, total = found + len(got & right), total + len(right)
        hull = set(range(min(right), max(right) + 1))
        foreign, marked = foreign + len(got & elsewhere - hull), marked + len(got)
        whole += right <= got and not got & elsewhere - hull
    print(
        f"  forced decoding, head {translator._linker.head}, shift {translator._linker.shift}: "
        f"{100 * found / total:.1f} % of the words with sure links are in their tag; {100 * foreign / marked:.1f} % of "
        f"the words in tags belong elsewhere; {100 * whole / len(forced):.1f} % of the tags are entirely right"
    )
    marked_lines = [
        f"{html.escape(one[:begin], quote=False)}<b>{html.escape(one[begin:end], quote=False)}</b>"
        f"{html.escape(one[end:], quote=False)}"
        for one, (begin, end) in zip(text.source, spans, strict=True)
    ]
    searched = translator.translate(marked_lines, tags="html", documents="none")
    once = sum(each.tagged.count("<b>") == each.tagged.count("</b>") == 1 for each in searched)
    alone = translator.translate([one[slice(*span)] for one, span in zip(text.source, spans)], documents="none")
    expected = []
    for row, line in enumerate(text.reference):
        right = {other for word, other in text.links[row].sure if word in inside[row]}
        of = [at for at, word in enumerate(words_at(line, text.words[1][row])) if min(right) <= word <= max(right)]
        expected.append(line[of[0] : of[-1] + 1])
    got_spans = [
        html.unescape(match[1]) if (match := re.search("<b>(.*?)</b>", each.tagged)) else "" for each in searched
    ]
    sides: list[list[str]] = [got_spans, [str(each.text) for each in alone]]
    chrf = [sacrebleu.corpus_chrf(side, [expected]).score for side in sides]
    print(f"  search: {once} of {len(searched)} pairs are there once; chrF of their text {chrf[0]:.1f}, "
          f"of the same words translated alone {chrf[1]:.1f}")  # fmt: skip


def terms(run: str, text: Text, most: int = 3) -> list[dict[str, str]]:
    """One to `most` words a sentence that have one sure link, with their words in the reference, as terms."""
    asked = drawn_terms(text, most)
    translator = nmt.load(run, "threads=1", "device=cpu")
    plain = [each.text for each in translator.translate(text.source, documents="none")]
    texts = with_terms(translator, text, asked)
    for name, found in (("without", plain), ("with", texts)):
        counts = [
            len(re.findall(rf"(?i)(?<!\w){re.escape(target)}(?!\w)", one))
            for one, of in zip(found, asked, strict=True)
            for target in of.values()
        ]
        print(f"  {name} terms: {sum(map(bool, counts))} of {len(counts)} are there "
              f"({100 * sum(map(bool, counts)) / len(counts):.1f} %), {sum(count > 1 for count in counts)} twice; "
              f"BLEU {bleu(found, text.reference):.2f}")  # fmt: skip
    return asked


def drawn_terms(text: Text, most: int) -> list[dict[str, str]]:
    """The terms of each sentence."""
    draws, asked = random.Random(1), []
    for row, links in enumerate(text.links):
        source, target = text.words[0][row], text.words[1][row]
        good: dict[str, str] = {}
        for one, other in sorted(links.sure):
            alone = [one, other] == [sum(one == each for each, _ in links.possible) - 1 + one,
                                     sum(other == each for _, each in links.possible) - 1 + other]  # fmt: skip
            if alone and min(len(source[one]), len(target[other])) > 3 and (source[one] + target[other]).isalpha():
                pair = (re.findall(rf"(?i)\b{source[one]}\b", text.source[row]),
                        re.findall(rf"(?i)\b{target[other]}\b", text.reference[row]))  # fmt: skip
                if len(pair[0]) == len(pair[1]) == 1:
                    good[pair[0][0]] = pair[1][0]
        chosen = draws.sample(sorted(good), min(len(good), draws.randint(1, most)))
        asked.append({one: good[one] if good[one].isupper() else good[one].lower() for one in chosen})
    return asked


def with_terms(translator: RunTranslator, text: Text, asked: list[dict[str, str]]) -> list[str]:
    """The translations, each with its own terms."""
    from nmt.translation.glossary import Entry, Glossary
    from nmt.translation.request import Request

    requests = [
        Request(one, glossary=Glossary([Entry([word], [term]) for word, term in of.items()]) if of else None)
        for one, of in zip(text.source, asked, strict=True)
    ]
    return [ranked[0].text for ranked in translator._translator.translate(requests)]


def speed(run: str, text: Text) -> None:
    """CPU time of the same sentences with and without terms, the faster of three times."""
    translator, asked = nmt.load(run, "threads=1", "device=cpu"), drawn_terms(text, 3)
    seconds: dict[str, list[float]] = {"without": [], "with": []}
    for _ in range(3):
        none: list[dict[str, str]] = [{} for _ in asked]
        for name, of in (("without", none), ("with", asked)):
            begun = time.process_time()
            with_terms(translator, text, of)
            seconds[name].append(time.process_time() - begun)
    without, with_ = min(seconds["without"]), min(seconds["with"])
    print(f"  {without:.2f} s without terms, {with_:.2f} s with terms: {with_ / without:.2f} times")


def nestings(run: str, text: Text, count: int = 10_000) -> None:
    """Random nestings of tags in the sentences as HTML, projected by their links; no model."""
    draws, wrong = random.Random(1), dict.fromkeys(("markup", "pairs", "nesting", "text"), 0)
    tags_seen = 0

    def written(line: str, begin: int, end: int, depth: int) -> str:
        """The characters in HTML, with up to three tags or pairs at each depth."""
        nonlocal tags_seen
        parts, at = [], begin
        for _ in range(draws.randint(0, 3) if depth < 4 else 0):
            start = draws.randint(at, end)
            stop = draws.randint(start, end)
            parts.append(html.escape(line[at:start], quote=False))
            tags_seen += 1
            if draws.random() < 0.8:
                parts.append(f'<b id="{tags_seen}">{written(line, start, stop, depth + 1)}</b>')
                start = stop
            else:
                parts.append(f'<img id="{tags_seen}"/>')
            at = start
        return "".join(parts) + html.escape(line[at:end], quote=False)

    def around(markup: str) -> tuple[list[tuple[str, ...]], str]:
        """Each tag with those around it, and the text."""
        found: list[tuple[str, ...]] = []

        def visit(element: ElementTree.Element, outer: tuple[str, ...]) -> None:
            for each in element:
                found.append((each.attrib["id"], *outer))
                visit(each, found[-1])

        root = ElementTree.fromstring(f"<r>{markup}</r>")
        visit(root, ())
        return sorted(found), "".join(root.itertext())

    for number in range(count):
        row = number % len(text.source)
        source, target = text.source[row], text.reference[row]
        spans = [[match.span() for match in re.finditer(r"\S+", line)] for line in (source, target)]
        of = [words_at(line, side[row]) for line, side in zip((source, target), text.words, strict=True)]
        links = [
            (one, other)
            for one, (begin, end) in enumerate(spans[0])
            for other, (low, high) in enumerate(spans[1])
            if text.links[row].sure & {(a, b) for a in of[0][begin:end] for b in of[1][low:high]}
        ]
        markup = written(source, 0, len(source), 0)
        linked = LinkedText.of_words(source, target, spans[0], spans[1], links)
        assert [each.text for each in read_html(markup) if isinstance(each, Segment)] == [source]
        projected = "".join(
            project(linked, each.tags).render(escape) if isinstance(each, Segment) else each
            for each in read_html(markup)
        )
        try:
            (got, shown), (expected, _) = around(projected), around(markup)
        except ElementTree.ParseError:
            wrong["markup"] += 1
            continue
        wrong["pairs"] += [each[0] for each in got] != [each[0] for each in expected]
        wrong["nesting"] += got != expected
        wrong["text"] += shown != target
    print(f"  {count:,} nestings of {tags_seen:,} tags; wrong: {wrong}")


def placeholders(run: str, text: Text) -> None:
    """One to three placeholders put between words of each sentence."""
    draws = random.Random(1)
    kinds = ("{0}", "{name}", "%s", "%(n)d", "$VAR", "${HOME}", "&nbsp;", "https://a.org/b?c=1", "me@b.org", "`x = 1`")
    asked, kept = [], []
    for source in text.source:
        words, chosen = source.split(" "), draws.sample(kinds, draws.randint(1, 3))
        for each in chosen:
            words.insert(draws.randint(0, len(words) - 1), each)
        asked.append(" ".join(words))
        kept.append(chosen)
    translator = nmt.load(run, "threads=1", "device=cpu")
    kinds_kept: list[list[Keep]] = [[], ["placeholders"]]
    for keep in kinds_kept:
        found = translator.translate(asked, documents="none", keep=keep)
        right = [one.text.count(each) == 1 for one, of in zip(found, kept, strict=True) for each in of]
        print(f"  keep={keep}: {sum(right)} of {len(right)} are there once ({100 * sum(right) / len(right):.2f} %)")


def doubts(run: str, text: Text) -> None:
    """The area under the ROC curve of the confidence of words."""
    from nmt.inspection.doubt import measured

    translator = nmt.load(run, "threads=1", "device=cpu", "doubts=true")
    found = measured(translator.translate(text.source, documents="none"), text.reference)
    table = ", ".join(f"{mean:.2f}: {right:.2f}" for _, mean, right in found.calibration)
    print(f"  AUC {found.auc:.3f} of {found.words:,} words, {100 * found.right:.1f} % right; confidence: share of "
          f"right words {table}")  # fmt: skip


GATES: dict[str, Callable[[str, Text], object]] = {
    "tags": tags,
    "terms": terms,
    "placeholders": placeholders,
    "doubts": doubts,
    "speed": speed,
    "nestings": nestings,
}


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(prog="at_work.py", description="Measures what docs/at-work.md promises.")
    parser.add_argument("gates", metavar="GATE,...", help=", ".join(GATES))
    parser.add_argument("run")
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--words", nargs=2, type=Path, metavar=("SOURCE", "REFERENCE"))
    parser.add_argument("--links", type=Path)
    parser.add_argument("--lines", type=int, default=1000)
    given = parser.parse_args()
    gates = given.gates.split(",")
    if unknown := [gate for gate in gates if gate not in GATES]:
        parser.error(f"{unknown[0]}: must be one of {', '.join(GATES)}")
    if {"tags", "terms", "speed", "nestings"}.intersection(gates) and not (given.words and given.links):
        parser.error("tags, terms, speed and nestings need --words and --links")
    read = slice(given.lines)
    words = [[html.unescape(line).split() for line in lines(path)[read]] for path in given.words or ()] or [[], []]
    links = [parse_links(line) for line in lines(given.links)[read]] if given.links else []
    text = Text(lines(given.source)[read], lines(given.reference)[read], (words[0], words[1]), links)
    if links:  # sentences without a sure link say nothing
        rows = [row for row, each in enumerate(links) if each.sure]
        text = Text(
            [text.source[row] for row in rows],
            [text.reference[row] for row in rows],
            ([words[0][row] for row in rows], [words[1][row] for row in rows]),
            [links[row] for row in rows],
        )
    warnings.simplefilter("ignore")
    for gate in gates:
        print(f"{gate}: {given.run}, {len(text.source):,} sentences of {given.source.name}", flush=True)
        GATES[gate](given.run, text)


if __name__ == "__main__":
    main()
