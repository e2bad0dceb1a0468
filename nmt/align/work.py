"""Word links of existing translations and their scores, by forced decoding with one or two runs."""

import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.align.request import Aligning
from nmt.alignment.baselines import baselines
from nmt.alignment.error_rate import against_gold
from nmt.alignment.link_files import LinksFile
from nmt.alignment.splitters import WordSplitters
from nmt.alignment.symmetrization import AGREEMENT
from nmt.alignment.word_weights import SHIFTS, Weights
from nmt.build.aligner import SALIENCY, Aligner, Evidence, SentencePairs
from nmt.build.head_choice import Choice, choose, own_gold, own_validation
from nmt.build.link_scores import named_languages, read_text, table
from nmt.build.open import OpenRun, open_run, own_data, own_split
from nmt.build.paths import check_paths, writer
from nmt.build.requests import note_one_document
from nmt.config.composition import compose
from nmt.data.dataset import DataSource, Split, safe_name
from nmt.data.document_lines import numbered
from nmt.data.languages import UNNAMED
from nmt.links import GoldLinks, Link, format_links
from nmt.runs.versions import code_revision
from nmt.system.errors import UserError
from nmt.system.files import STANDARD, write_json
from nmt.system.terminal import print_message, printable
from nmt.text.canonical import shows_nothing
from nmt.translation.named_heads import AUTO

MEASURED = ("words", "head", "checkpoint", "max_length")  # settings that, with the threshold, identify a measurement
FILES, VALID_FILES = "source=FILE target=FILE", "valid_source=FILE valid_target=FILE"  # in place of the run's data
INPUTS = ("source", "target", "gold", "valid_source", "valid_target", "valid_gold")
Links = dict[Evidence, list[list[Link]]]  # {evidence: links of each sentence pair}
Methods = Mapping[str, Sequence[Sequence[Evidence]]]  # {method: the evidence of each direction, one or two kinds}


class EvidenceChoice(NamedTuple):
    """The evidence of each direction by method, the reason for the shift (`Choice`), and the heads in words."""

    by_method: Methods
    shift_from: str
    heads: Sequence[str] = ()


def align(request: Aligning) -> int:
    """Write the links of a run, or of two runs of opposite directions, and score them if there are gold links."""
    outputs = {"output": request.output, "matrix": request.matrix}
    check_paths({key: getattr(request, key) for key in INPUTS}, outputs)
    runs = _runs(request)
    source = own_data(runs[0], request.data, FILES) if request.source is None else None
    pairs = _pairs(request, runs[0], source)
    aligners = [Aligner.open(run, request.aligner, backward=number == 1) for number, run in enumerate(runs)]
    follows = any(aligner.translator.context_sentences for aligner in aligners) and request.documents == "blank"
    if follows and request.source is not None and not any(map(shows_nothing, pairs.source)):
        note_one_document(len(pairs.source))
    attends = all(aligner.attends for aligner in aligners)
    if request.method != "saliency" and not attends:
        without = next(aligner for aligner in aligners if not aligner.attends)
        raise UserError(
            f"method={request.method} needs attention, but {without.run.folder} has none (decoder=none). Give "
            f"method=saliency, which works for any model, or use a run with attention."
        )
    choice = EvidenceChoice({"saliency": [[SALIENCY] for _ in aligners]}, "")
    evidence: list[set[Evidence]] = [{SALIENCY} for _ in aligners]
    if attends and (request.method != "saliency" or pairs.gold is not None):
        head_choices = _head_choices(request, source, aligners)
        heads = [
            a.heads.describe(each.evidence.head) for each, a in zip(head_choices, aligners) if len(a.heads.names) > 1
        ]
        attention = [[each.evidence] for each in head_choices]
        by_method = {**choice.by_method, "attention": attention, "both": [[*each, SALIENCY] for each in attention]}
        choice = EvidenceChoice(by_method, head_choices[0].shift_from, heads)
        evidence = [{SALIENCY, *(each.evidence._replace(shift=shift) for shift in SHIFTS)} for each in head_choices]
    if pairs.gold is None:
        evidence = [{*used} for used in choice.by_method[request.method]]
    else:
        print_message(f"Aligning {pairs.name}: {len(pairs.source):,} sentence pairs ...")
        spaced = sum(any(re.search(r"[^\S \t]", line) for line in pair) for pair in zip(pairs.source, pairs.target))
        if spaced and request.words == "whitespace":
            print_message(
                f"note: {spaced:,} pairs have spaces beside U+0020, such as NO-BREAK SPACE. They separate words, too. "
                "If the gold links count them otherwise, replace these characters in the text."
            )
    text = pairs.source, pairs.target
    without_model = {} if pairs.gold is None else baselines(pairs.gold, pairs.words.sizes(*text))
    links, joined = _write(request, pairs, aligners, evidence, choice.by_method)
    if pairs.gold is not None:
        report = printable(_report(request, pairs, links, joined, choice, without_model))
        print(report, file=sys.stderr if STANDARD in outputs.values() else sys.stdout)
        if len(aligners) == 1:
            _save_rates(request, aligners[0], pairs, links[0], choice, without_model)
    return 0


def _write(
    request: Aligning,
    pairs: SentencePairs,
    aligners: Sequence[Aligner],
    evidence: Sequence[Collection[Evidence]],
    by_method: Methods,
) -> tuple[list[Links], dict[str, list[set[Link]]]]:
    """Write links and weights, pair by pair.

    Returns:
        With gold links: the links of each direction by evidence, and those of all directions by method.
    """
    all_links: list[Links] = [{kind: [] for kind in kinds} for kinds in evidence]
    joined: dict[str, list[set[Link]]] = {method: [] for method in by_method}
    with contextlib.ExitStack() as stack:
        silent = pairs.gold is not None or request.matrix is not None
        write = writer(stack, request.output) if request.output is not None or not silent else None
        write_matrix = writer(stack, request.matrix) if request.matrix is not None else None
        weights_by_run = [aligner.weights(pairs, kinds) for aligner, kinds in zip(aligners, evidence, strict=True)]
        for source, target, *weights in zip(pairs.source, pairs.target, *weights_by_run, strict=True):
            weights_by_method = {
                method: [[by_kind[kind] for kind in kinds] for by_kind, kinds in zip(weights, used, strict=True)]
                for method, used in by_method.items()
                if pairs.gold is not None or method == request.method
            }
            links = {method: request.join(used) for method, used in weights_by_method.items()}
            if write is not None:
                write(format_links(links[request.method]))
            if write_matrix is not None:
                labels = pairs.words.source(source), pairs.words.target(target)
                write_matrix(_as_json(labels, request.matrices(weights_by_method[request.method])))
            if pairs.gold is not None:
                for method, pair_links in links.items():
                    joined[method].append(pair_links)
                for aligner, so_far, by_kind in zip(aligners, all_links, weights, strict=True):
                    for kind, matrix in by_kind.items():
                        so_far[kind].append(aligner.links(matrix, request.least_weight))
    return all_links, joined


# Text to align


def _runs(request: Aligning) -> list[OpenRun]:
    """The run, and the run of the opposite direction if it is given."""
    named = [request.run] if isinstance(request.run, str) else request.run
    if not named:
        raise UserError("run=[] is empty. Give run=checkpoints/NAME.")
    if len(named) > 1:
        raise UserError(
            "nmt.align uses one model, not an ensemble. Give one run (and reverse= for the other direction)."
        )
    runs = [open_run(Path(folder)) for folder in (named[0], request.reverse) if folder is not None]
    codes = [run.languages for run in runs]
    if len(runs) == 2 and UNNAMED not in codes and codes[0] != codes[1][::-1]:
        raise UserError(
            f"reverse={request.reverse} translates {' to '.join(codes[1])}; with {runs[0].folder} it must translate "
            f"{' to '.join(codes[0][::-1])}."
        )
    return runs


def _words(request: Aligning, run: OpenRun, name: str) -> WordSplitters:
    known = run.languages if "languages" in run.facts else ("", "")
    return WordSplitters.of(name, named_languages(request.languages, known))


def _pairs(request: Aligning, run: OpenRun, source: DataSource | None) -> SentencePairs:
    """The sentence pairs to align, with gold links if there are any."""
    words = _words(request, run, request.words)
    text = read_text({"source": request.source, "target": request.target})
    split: Split | None = None
    if source is not None:
        split = own_split(run, source, request.split or _only_test(run, source))
        name, text = split.name, (list(split.source), list(split.target))
    elif request.split is not None:
        raise UserError("split= and source= cannot be combined. Give one of them.")
    else:
        assert request.source is not None
        name = request.source.name
    assert text is not None
    documents = numbered(text[0], request.documents) if split is None else split.documents
    gold: list[GoldLinks] | None = None
    if request.gold is not None:
        gold = LinksFile("gold", request.gold, request.gold_base).read(text, words)
    elif source is not None and split is not None and source.has_links:  # links for guided alignment are not gold
        gold = own_gold(split, words.name)
    return SentencePairs(name, *text, words, gold, documents)


def _only_test(run: OpenRun, source: DataSource) -> str:
    names = source.tests()
    if len(names) == 1:
        return names[0]
    has = f"has the test splits {', '.join(names)}" if names else "has no test split"
    raise UserError(
        f"The data of {run.folder} {has}. Choose a split: split={names[0] if names else 'valid'}, or give "
        f"source=FILE target=FILE."
    )


def _validation(request: Aligning, run: OpenRun, source: DataSource | None) -> SentencePairs | None:
    """The validation data for shift=auto and head=auto: given files, or the run's validation set if it has links."""
    text = read_text({"valid_source": request.valid_source, "valid_target": request.valid_target})
    if text is not None and request.valid_gold is None:
        raise UserError("valid_source= and valid_target= need valid_gold= as well: their links.")
    if request.valid_gold is not None:
        words = _words(request, run, request.valid_words or request.words)
        documents: Sequence[int] | None = None if text is None else numbered(text[0], request.documents)
        if text is None:
            split = own_split(run, source or own_data(run, request.data, VALID_FILES), "valid")
            text, documents = (list(split.source), list(split.target)), split.documents
        gold = LinksFile("valid_gold", request.valid_gold, request.gold_base).read(text, words)
        return SentencePairs("valid", *text, words, gold, documents)
    return own_validation(run, request.data, source)


def _head_choices(request: Aligning, source: DataSource | None, aligners: Sequence[Aligner]) -> list[Choice]:
    """The chosen head and shift for each direction."""
    several = any(aligner.head == AUTO and len(aligner.heads.names) > 1 for aligner in aligners)
    pairs = _validation(request, aligners[0].run, source) if several or request.shift == AUTO else None
    return [choose(aligner, request.shift, pairs, request.least_weight) for aligner in aligners]


# Output


def _as_json(labels: Sequence[Sequence[str]], weights: Sequence[Weights]) -> str:
    """A line of the file of weights: `weights` has a row for each target word, `reverse` for each source word."""
    rows = [[[round(float(weight), 5) for weight in row] for row in matrix] for matrix in weights]
    names = dict(zip(("weights", "reverse"), rows))
    return json.dumps({"source": labels[0], "target": labels[1], **names}, ensure_ascii=False)


def _save_rates(
    request: Aligning,
    aligner: Aligner,
    pairs: SentencePairs,
    links: Links,
    choice: EvidenceChoice,
    without_model: Mapping[str, Sequence[Iterable[Link]]],
) -> None:
    """Save the error rates in the run's folder for `nmt.compare`; warn if they cannot be saved."""
    assert pairs.gold is not None
    run = aligner.run
    settings = {key: getattr(request if key == "words" else request.aligner, key) for key in MEASURED}
    gold_lines = [format_links(gold.sure, gold.possible) for gold in pairs.gold]
    context = _context_settings(request, aligner)
    values = map(str, (*settings.values(), request.least_weight))
    digested = [*pairs.source, *pairs.target, *gold_lines, *values, *context]
    digest = hashlib.sha256("\n".join(digested).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    gold = pairs.name if request.gold is None else request.gold.name
    if request.least_weight is not None:
        gold += f", links above {request.least_weight}"
    # Name the settings that are not the default, to distinguish measurements against the same links.
    defaults = compose("align", [])
    gold += "".join(f", {key}={value}" for key, value in settings.items() if value != defaults[key])
    gold += "".join(f", {setting}" for setting in context)
    attention = next(iter(choice.by_method.get("attention", [[]])[0]), None)
    saved = {
        "gold": gold,
        "pairs": len(pairs.source),
        "checkpoint": request.aligner.checkpoint,
        "step": run.best_step if request.aligner.checkpoint == "best" else None,
        "attention": None if attention is None else str(attention),
        "head": None if attention is None else attention.head,
        "shift_from": choice.shift_from,
        "code": code_revision(),
        "rates": {str(kind): against_gold(links[kind], pairs.gold)._asdict() for kind in sorted(links)},
        "without_model": {name: against_gold(guess, pairs.gold)._asdict() for name, guess in without_model.items()},
    }
    path = run.files.alignments / f"{safe_name(gold)}-{digest}.json"
    try:
        write_json(path, saved)
    except UserError as error:
        print_message(f"warning: the error rates are not saved for nmt.compare: {error}")


def _context_settings(request: Aligning, aligner: Aligner) -> list[str]:
    """The context settings that differ from their defaults, for a model trained with context."""
    if not any(model.context_sentences for model in aligner.translator.models):
        return []
    settings = []
    if request.source is not None and request.documents != "blank":
        settings.append(f"documents={request.documents}")
    if request.aligner.context_sentences is not None:
        settings.append(f"context_sentences={request.aligner.context_sentences}")
    return settings


def _report(
    request: Aligning,
    pairs: SentencePairs,
    links: Sequence[Links],
    joined: Mapping[str, Sequence[Iterable[Link]]],
    choice: EvidenceChoice,
    without_model: Mapping[str, Sequence[Iterable[Link]]],
) -> str:
    """The table of error rates: of all evidence by direction, of both directions combined, and of the baselines."""
    assert pairs.gold is not None
    rows: dict[str, Sequence[Iterable[Link]]] = {}
    used = choice.by_method[request.method]
    if len(links) == 1:
        rows = {f"{kind}{' *' if [[kind]] == used else ''}": links[0][kind] for kind in sorted(links[0])}
    else:
        for name, by_kind in zip(("run", "reverse"), links, strict=True):
            rows |= {f"{name}, {kind}": by_kind[kind] for kind in sorted(by_kind)}
    for method, kinds in sorted(choice.by_method.items()):
        if len(links) > 1 or method == "both":
            views = kinds[0] if len(links) == 1 else [" + ".join(map(str, direction)) for direction in kinds]
            what = " and ".join(dict.fromkeys(map(str, views)))
            mark = " *" if method == request.method else ""
            rule = AGREEMENT if len(links) == 1 else request.joining
            rows[f"{rule} of {what}{mark}"] = joined[method]
    rows |= without_model
    heads = "".join(f"attention: {head}\n" for head in choice.heads)
    return f"{pairs.name}: word links against gold links (*: written to output=)\n{heads}\n{table(rows, pairs.gold)}"
