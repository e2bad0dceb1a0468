"""From a run to word links: given translations are forced, and what each word came from becomes links and figures."""

import contextlib
import hashlib
import json
import math
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from omegaconf import DictConfig

from nmt.alignment.error_rate import AlignmentScore, against_gold
from nmt.alignment.splitting import Splitter
from nmt.alignment.symmetrize import SYMMETRIZATIONS, symmetrize
from nmt.alignment.weights import SHIFTS, Head, Weights, best_links, saliency_weights, word_weights
from nmt.alignment.words import spelled
from nmt.command.composing import compose
from nmt.compute import Compute
from nmt.data.corpus import DataSource, safe_name
from nmt.data.languages import UNNAMED
from nmt.errors import UserError
from nmt.files import write_text
from nmt.limits import checked
from nmt.links import GoldLinks, Link, format_links, parse_file
from nmt.pipeline.linking import named_languages, read_gold, read_text, splitters, table
from nmt.pipeline.opening import has_weights, head_of, open_model, own_data, own_split
from nmt.pipeline.paths import check_paths, writer
from nmt.runs import Run
from nmt.search import GreedySearch
from nmt.translation.translator import Translator

CHUNK = 500  # sentence pairs whose matrices are held at a time
MEASURED = ("words", "head", "checkpoint", "max_length")  # besides the threshold, what makes it another measurement
INPUTS = ("source", "target", "gold", "valid_source", "valid_target", "valid_gold")


class Look(NamedTuple):
    """One way of asking what a word came from; the shift is the attention's, saliency has 0."""

    method: str
    shift: int

    def __str__(self) -> str:
        return f"attention, shift {self.shift}" if self.method == "attention" else self.method


SALIENCY = Look("saliency", 0)
Found = dict[Look, list[list[Link]]]  # the links of every pair


class Pairs(NamedTuple):
    """Sentences with their translations, what cuts them into words, and gold links if there are any."""

    name: str
    source: Sequence[str]
    target: Sequence[str]
    split: tuple[Splitter, Splitter]
    gold: list[GoldLinks] | None


def align(config: DictConfig) -> int:
    """Writes the links of a run, or of two that face each other, and scores them where there is gold."""
    ways = _settings(config)
    outputs = {key: Path(str(config[key])) for key in ("output", "matrix") if config[key] is not None}
    check_paths({key: Path(str(config[key])) for key in INPUTS if config[key] is not None}, outputs)
    runs = _runs(config)
    source = own_data(runs[0]) if config.source is None else None
    pairs = _pairs(config, runs[0], source)
    directions = [_Direction(config, run, backward=number == 1) for number, run in enumerate(runs)]
    attentive = all(direction.attentive for direction in directions)
    if config.method == "attention" and not attentive:
        without = next(direction for direction in directions if not direction.attentive)
        raise UserError(
            f"method=attention reads attention weights, and {without.run.folder} has none (decoder=none). Give "
            f"method=saliency, which any model has, or take a run with attention."
        )
    looks = {"saliency": [SALIENCY for _ in directions]}  # of each direction, by method
    how = ""
    if attentive and (config.method == "attention" or pairs.gold is not None):
        shifts, how = _shifts(config, runs[0], source, directions, ways.threshold)
        looks["attention"] = [Look("attention", shift) for shift in shifts]
    used = looks[str(config.method)]
    asked = [{look} for look in used]
    if pairs.gold is not None:
        asked = [{SALIENCY, *(Look("attention", shift) for shift in SHIFTS if attentive)} for _ in directions]
        print(f"Forcing {pairs.name}: {len(pairs.source):,} sentence pairs ...", file=sys.stderr, flush=True)
    found: list[Found] = [{look: [] for look in own} for own in asked]
    with contextlib.ExitStack() as stack:
        silent = pairs.gold is not None or "matrix" in outputs
        write = writer(stack, outputs.get("output")) if "output" in outputs or not silent else None
        write_matrix = writer(stack, outputs["matrix"]) if "matrix" in outputs else None
        answers = (direction.over(pairs, own) for direction, own in zip(directions, asked, strict=True))
        for source_line, target_line, *weights in zip(pairs.source, pairs.target, *answers, strict=True):
            links = [
                {look: direction.links(matrix, ways.threshold) for look, matrix in own.items()}
                for direction, own in zip(directions, weights, strict=True)
            ]
            if write is not None:
                write(format_links(ways.join([own[look] for own, look in zip(links, used, strict=True)])))
            if write_matrix is not None:
                labels = pairs.split[0](source_line), pairs.split[1](target_line)
                write_matrix(_as_json(labels, [own[look] for own, look in zip(weights, used, strict=True)]))
            if pairs.gold is not None:
                _keep(found, links)
    if pairs.gold is not None:
        print(_report(pairs, found, looks, used, ways))
        if len(directions) == 1:
            _keep_rates(config, directions[0], pairs, found[0], looks.get("attention", [None])[0], how)
    return 0


class Ways(NamedTuple):
    """How weights become links, and the links of two directions one set."""

    threshold: float | None
    symmetrize: str

    def join(self, links: Sequence[Iterable[Link]]) -> set[Link]:
        """The links of one direction, or of both joined."""
        return set(links[0]) if len(links) == 1 else symmetrize(set(links[0]), set(links[1]), self.symmetrize)


def _settings(config: DictConfig) -> Ways:
    """What the settings say that need no run to be checked."""
    if config.run is None:
        raise UserError(
            "Say what is to be aligned: run=checkpoints/NAME makes links, links=FILE gold=FILE scores links that are "
            "there already."
        )
    if config.method not in ("attention", "saliency"):
        raise UserError(f"method={config.method} is not known. Give method=attention or method=saliency.")
    if str(config.shift) not in ("0", "1", "auto"):
        raise UserError(f"shift={config.shift} is not known. Give shift=0, shift=1 or shift=auto.")
    if config.method == "saliency" and str(config.shift) == "1":
        raise UserError("shift=1 is for attention weights: saliency is of the word that is predicted. Leave it out.")
    threshold = config.threshold
    if threshold is not None and not (isinstance(threshold, int | float) and 0 < threshold <= 1):
        raise UserError(f"threshold={threshold} must be a number between 0 and 1, a share of a word's weight, or null.")
    if config.symmetrize is not None and config.reverse is None:
        raise UserError("symmetrize= joins the links of two directions: give reverse=RUN as well.")
    how = "grow-diag-final" if config.symmetrize is None else str(config.symmetrize)
    if how not in SYMMETRIZATIONS:
        raise UserError(f"symmetrize={how} is not known. Give symmetrize= one of {', '.join(SYMMETRIZATIONS)}.")
    if int(config.max_length) < 1:
        raise UserError(f"max_length must be at least 1, not {config.max_length}.")
    return Ways(None if threshold is None else float(threshold), how)


def _runs(config: DictConfig) -> list[Run]:
    """The run, and the one of the other direction if there is to be one."""
    runs = [Run(Path(path)) for path in ([config.run] if isinstance(config.run, str) else config.run)]
    if not runs:
        raise UserError("run=[] names no run. Give run=checkpoints/NAME.")
    if len(runs) > 1:
        raise UserError(
            "Links are read off one model at a time. Give run= one run (and reverse= one of the other direction)."
        )
    if config.reverse is not None:
        runs.append(Run(Path(str(config.reverse))))
    codes = []
    for run in runs:
        run.config()  # says what is wrong with a folder that is no run
        codes.append(tuple(run.facts().get("languages", ())))
    if len(runs) == 2 and UNNAMED not in codes and codes[0] != codes[1][::-1]:
        raise UserError(
            f"reverse={config.reverse} translates {' to '.join(codes[1])}; beside {runs[0].folder} it must translate "
            f"{' to '.join(codes[0][::-1])}."
        )
    return runs


def _pairs(config: DictConfig, run: Run, source: DataSource | None) -> Pairs:
    """What is to be aligned, with its gold."""
    known = run.facts().get("languages", ("", ""))
    split = splitters(str(config.words), named_languages(config.languages, (str(known[0]), str(known[1]))))
    given = read_text(config, "source", "target")
    links: Sequence[str] | None = None
    if source is not None:
        own = own_split(run, source, _split_name(config, run, source))
        name, text = own.name, (own.source, own.target)
        links = own.links if source.has_links else None  # links that guide a training are no gold
    elif config.split is not None:
        raise UserError("split= and source= are two things to align. Give one of them.")
    else:
        assert given is not None
        name, text = Path(str(config.source)).name, given
    gold: list[GoldLinks] | None = None
    if config.gold is not None:
        gold = read_gold("gold", config, text, split, str(config.words))
    elif links is not None:
        gold = _own_gold(links, name, str(config.words))
    return Pairs(name, *text, split, gold)


def _split_name(config: DictConfig, run: Run, source: DataSource) -> str:
    if config.split is not None:
        return str(config.split)
    names = source.tests()
    if len(names) == 1:
        return names[0]
    has = f"has the test sets {', '.join(names)}" if names else "names no test set"
    raise UserError(
        f"The data of {run.folder} {has}. Say which of its sets with split={names[0] if names else 'valid'}, or give "
        f"source=FILE target=FILE."
    )


def _own_gold(links: Sequence[str], name: str, words: str) -> list[GoldLinks]:
    if words != "whitespace":
        raise UserError(f"words={words}: the gold links of {name} count words between white space. Leave words= out.")
    return parse_file(links, f"The gold of {name}", pairs=len(links))


def _validation(config: DictConfig, run: Run, source: DataSource | None) -> Pairs | None:
    """What shift=auto chooses on: files, or the run's own validation set where there are links for it."""
    words = str(config.words if config.valid_words is None else config.valid_words)
    known = run.facts().get("languages", ("", ""))
    split = splitters(words, named_languages(config.languages, (str(known[0]), str(known[1]))))
    text: tuple[Sequence[str], Sequence[str]] | None = read_text(config, "valid_source", "valid_target")
    if text is not None and config.valid_gold is None:
        raise UserError("valid_source= and valid_target= need valid_gold= beside them: their links.")
    if config.valid_gold is not None:
        if text is None:
            own = own_split(run, own_data(run) if source is None else source, "valid")
            text = own.source, own.target
        return Pairs("valid", *text, split, read_gold("valid_gold", config, text, split, words))
    if source is None:
        # Data that have moved away are no reason to refuse: they are not what was asked for.
        with contextlib.suppress(UserError):
            source = own_data(run)
    if source is None or not source.has_links:
        return None
    own = own_split(run, source, "valid")
    assert own.links is not None
    split = splitters("whitespace", ("", ""))
    return Pairs("valid", own.source, own.target, split, _own_gold(own.links, own.name, "whitespace"))


def _shifts(
    config: DictConfig,
    run: Run,
    source: DataSource | None,
    directions: Sequence["_Direction"],
    threshold: float | None,
) -> tuple[list[int], str]:
    """The shift of each direction: as it is set, or the better one on validation links, never on those of the test.

    And how it was found: "set", "validation" or, without validation links, "default".
    """
    if str(config.shift) != "auto":
        return [int(config.shift)] * len(directions), "set"
    pairs = _validation(config, run, source)
    if pairs is None or pairs.gold is None:
        print(
            "shift=auto: there are no validation links to choose on (valid_gold=FILE), so it is 0: a row of the "
            "weights belongs to the word that it predicts.",
            file=sys.stderr,
        )
        return [0] * len(directions), "default"
    looks = [Look("attention", shift) for shift in SHIFTS]
    chosen = []
    for direction in directions:
        found: Found = {look: [] for look in looks}
        for weights in direction.over(pairs, looks):
            _keep([found], [{look: direction.links(weights[look], threshold) for look in looks}])
        scores = {look.shift: against_gold(found[look], pairs.gold) for look in looks}
        best = min(SHIFTS, key=lambda shift: scores[shift].aer)
        print(_why(direction, pairs, scores, best), file=sys.stderr)
        chosen.append(best)
    return chosen, "validation"


def _keep(found: Sequence[Found], links: Sequence[Mapping[Look, list[Link]]]) -> None:
    """Adds the links of one pair to those of the pairs before, direction by direction."""
    for kept, own in zip(found, links, strict=True):
        for look, one in own.items():
            kept[look].append(one)


def _why(direction: "_Direction", pairs: Pairs, scores: Mapping[int, AlignmentScore], best: int) -> str:
    figures = " and ".join(f"{100 * score.aer:.1f} % with shift {shift}" for shift, score in scores.items())
    return (
        f"shift=auto: on the {len(pairs.source):,} validation pairs the AER of {direction.run.folder} is {figures}, so "
        f"a row of its weights belongs to {SHIFTS[best]} (shift {best})."
    )


class _Direction:
    """One run as an aligner. The backward one translates targets into sources; its links are turned round."""

    def __init__(self, config: DictConfig, run: Run, *, backward: bool) -> None:
        settings = {key: config[key] for key in ("device", "precision", "threads")}
        compute = checked(Compute.choose, settings)()
        model, tokenizer = open_model(run, config.checkpoint, compute)
        self.run, self.backward, self.max_length = run, backward, int(config.max_length)
        self.translator = Translator(
            [model], tokenizer, GreedySearch(), compute=compute, batch_sentences=int(config.batch_sentences)
        )
        self.attentive = has_weights(self.translator)
        self.head: Head = "mean"
        if self.attentive:
            self.head = head_of(str(config.head), self.translator)

    def over(self, pairs: Pairs, looks: Collection[Look]) -> Iterator[dict[Look, Weights]]:
        """What the words of each pair came from, for each look.

        Yields:
            Weights over words: [target words, source words] of this direction, which are [source words, target words]
            of the pairs for the backward one. All zeros for a pair that is empty on a side, or too long.
        """
        for first in range(0, len(pairs.source), CHUNK):
            yield from self._chunk(pairs, first, looks)

    def _chunk(self, pairs: Pairs, first: int, looks: Collection[Look]) -> list[dict[Look, Weights]]:
        sides = [side[first : first + CHUNK] for side in (pairs.source, pairs.target)]
        cuts = [[cut(sentence) for sentence in side] for cut, side in zip(pairs.split, sides, strict=True)]
        if self.backward:
            sides, cuts = sides[::-1], cuts[::-1]
        shapes = [(len(target), len(source)) for source, target in zip(*cuts, strict=True)]
        found = [{look: np.zeros(shape, dtype=np.float32) for look in looks} for shape in shapes]
        rows = list(self._usable(sides, f"{pairs.name}, pair", first + 1))
        sources, targets = ([side[row] for row in rows] for side in sides)
        for method in {look.method for look in looks}:
            force = self.translator.saliency if method == "saliency" else self.translator.force
            for row, own in zip(rows, force(sources, targets), strict=True):
                source = spelled(own.source, own.source_spans, cuts[0][row])
                units = source, spelled(own.text, own.spans, cuts[1][row])
                for look in (look for look in looks if look.method == method):
                    found[row][look] = (
                        saliency_weights(own, units)
                        if method == "saliency"
                        else word_weights(own, self.head, look.shift, units)
                    )
        return found

    def _usable(self, sides: Sequence[Sequence[str]], name: str, number: int) -> Iterator[int]:
        """The pairs with text on both sides that are not too long; says which are, `name` counted from `number`."""
        tokenizer = self.translator.tokenizer
        lengths = zip(tokenizer.source.encode(sides[0]), tokenizer.target.encode(sides[1]), strict=True)
        for row, pieces in enumerate(lengths):
            longest = max(map(len, pieces))
            if longest > self.max_length:
                print(
                    f"warning: {name} {number + row} has {longest:,} pieces on a side, more than "
                    f"max_length={self.max_length}; it gets no links.",
                    file=sys.stderr,
                )
            elif all(side[row].strip() for side in sides):
                yield row

    def links(self, weights: Weights, threshold: float | None) -> list[Link]:
        """The links of one pair, (source, target) of the pair."""
        found = best_links(weights, threshold)
        return [(target, source) for source, target in found] if self.backward else found


def _as_json(labels: Sequence[Sequence[str]], weights: Sequence[Weights]) -> str:
    """A line of the file of soft matrices: a row of `weights` a target word, of `reverse` a source word."""
    rows = [[[round(float(weight), 5) for weight in row] for row in own] for own in weights]
    names = dict(zip(("weights", "reverse"), rows))
    return json.dumps({"source": labels[0], "target": labels[1], **names}, ensure_ascii=False)


def _keep_rates(
    config: DictConfig, direction: "_Direction", pairs: Pairs, found: Found, attention: Look | None, how: str
) -> None:
    """Keeps the error rates in the run's folder, where `nmt.compare` finds them.

    `attention` is the look at the attention that stands for it, if there is any, and `how` its shift was found.
    """
    assert pairs.gold is not None
    gold = pairs.name if config.gold is None else Path(str(config.gold)).name
    measured = [str(config[key]) for key in (*MEASURED, "threshold")]
    links = [format_links(own.sure, own.possible) for own in pairs.gold]
    text = "\n".join([*pairs.source, *pairs.target, *links, *measured])
    if config.threshold is not None:
        gold += f", links above {config.threshold}"
    # Other measurements against the same links are told apart by what is not as it comes.
    usual = compose("align", [])
    gold += "".join(f", {key}={config[key]}" for key in MEASURED if config[key] != usual[key])
    name = f"{safe_name(gold)}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}.json"
    kept = {
        "gold": gold,
        "pairs": len(pairs.source),
        "checkpoint": str(config.checkpoint),
        "step": direction.run.best_step() if config.checkpoint == "best" else None,
        "attention": None if attention is None else str(attention),
        "shift_from": how,
        "rates": {str(look): _finite(against_gold(own, pairs.gold)) for look, own in sorted(found.items())},
    }
    try:
        write_text(direction.run.alignments / name, json.dumps(kept, indent=2, ensure_ascii=False) + "\n")
    except UserError as error:
        print(f"warning: the error rates are not kept for nmt.compare: {error}", file=sys.stderr)


def _finite(score: AlignmentScore) -> dict[str, float | None]:
    """What JSON takes: None for a figure that is none."""
    return {key: None if math.isnan(value) else value for key, value in score._asdict().items()}


def _report(
    pairs: Pairs,
    found: Sequence[Found],
    looks: Mapping[str, Sequence[Look]],
    used: Sequence[Look],
    ways: Ways,
) -> str:
    """The table of error rates: every look of every direction, and what two directions give together."""
    assert pairs.gold is not None
    rows: dict[str, Sequence[Iterable[Link]]] = {}
    if len(found) == 1:
        for look in sorted(found[0]):
            rows[f"{look}{' *' if look == used[0] else ''}"] = found[0][look]
    else:
        for name, own in zip(("run", "reverse"), found, strict=True):
            rows |= {f"{name}, {look}": own[look] for look in sorted(own)}
        for method in sorted(looks):
            chosen = [own[look] for own, look in zip(found, looks[method], strict=True)]
            what = " and ".join(dict.fromkeys(map(str, looks[method])))
            mark = " *" if looks[method] == used else ""
            rows[f"{ways.symmetrize} of {what}{mark}"] = [ways.join(line) for line in zip(*chosen, strict=True)]
    return f"{pairs.name}: word links against gold, * those that output= gets\n\n{table(rows, pairs.gold)}"
