"""`nmt.align` end to end: links, soft matrices and error rates of given translations."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from nmt.alignment.baselines import DIAGONAL, ORACLE
from nmt.alignment.symmetrization import SYMMETRIZATIONS, symmetrize
from nmt.build.open import open_model, open_run
from nmt.links import parse_links
from nmt.runs.run import Run
from nmt.search import GreedySearch
from nmt.system.compute import CPU
from nmt.translation.translator import Translator
from tests.small import Capture, call, copied, pairs, refusal, write_lines

Links = list[set[tuple[int, int]]]

WITHOUT_MODEL = (DIAGONAL, ORACLE)
LINKS = "gold, links above 0.3"
BOTH = "agreement of attention, shift 0 and saliency"
ROWS = [*pairs(360)[340:], ("", ""), ("eins", ""), *pairs(10)]


@pytest.fixture
def files(here: Path) -> list[str]:
    """Sentences and translations, two pairs of them empty on a side, in files."""
    source = write_lines(here / "in.de", [row[0] for row in ROWS])
    target = write_lines(here / "in.en", [row[1] for row in ROWS])
    return [f"source={source}", f"target={target}"]


def read(path: Path) -> Links:
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    return [set(parse_links(line).sure) for line in lines]


def gold(path: Path, links: str = "{0}-{0}") -> Path:
    """A file of links between words of the same place, or as `links` says of the place and the last place."""
    counts = [min(len(side.split()) for side in row) for row in ROWS]
    return write_lines(path, [" ".join(links.format(at, count - 1 - at) for at in range(count)) for count in counts])


def rates(printed: str) -> dict[str, str]:
    """The error rates of a table, by what the links are from."""
    rows = re.findall(r"^(\S.*?)(?: \*)? {2,}(\S+) %  +\S+ %  +\S+ %$", printed, re.MULTILINE)
    return dict(rows)


def test_links_are_those_that_the_translator_writes(trained: Path, here: Path, capfd: Capture) -> None:
    """Forcing the model's own greedy translations, in another order of lengths and another batch, shows the same."""
    source = write_lines(here / "in", [row[0] for row in ROWS])
    own = [f"output={here / 'out'}", f"alignments={here / 'own'}", "search=greedy", "shift=1"]
    assert call("translate", f"run={trained}", f"input={source}", *own) == 0
    line = [f"run={trained}", f"source={source}", f"target={here / 'out'}", "shift=1"]
    assert call("align", *line, f"output={here / 'links'}", "batch_sentences=3") == 0
    assert read(here / "links") == read(here / "own")
    capfd.readouterr()
    assert call("align", *line) == 0
    out, err = capfd.readouterr()
    assert out == (here / "links").read_text(encoding="utf-8")
    assert err == ""


def test_forcing_a_translation_gives_the_weights_that_made_it(trained: Path) -> None:
    model, tokenizer = open_model(open_run(trained), "best", CPU)
    translator = Translator([model], tokenizer, GreedySearch(), batch_sentences=4)
    sources = [row[0] for row in ROWS if row[0]]
    made = [best[0] for best in translator.translate(sources)]
    forced = translator.force(sources, [own.text for own in made])
    for each in forced:
        assert len(each.log_probs) == len(each.best_log_probs) == len(each.pieces)
        assert sum(each.log_probs) == pytest.approx(each.log_prob, abs=1e-4)
        assert all(best >= one for one, best in zip(each.log_probs, each.best_log_probs, strict=True))
    alike = [(one, other) for one, other in zip(made, forced, strict=True) if one.pieces == other.pieces]
    assert len(alike) > len(made) / 2  # a search may spell a word in its own way
    for one, other in alike:
        assert one.weights is not None
        assert other.weights is not None
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-4)
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-3)
        # Greedy search took the most probable piece at each step.
        assert other.log_probs == pytest.approx(other.best_log_probs, abs=1e-3)


def test_error_rates_of_attention_and_saliency(trained: Path, here: Path, files: list[str], capfd: Capture) -> None:
    """The table says of each what scoring its links says."""
    path = gold(here / "gold")
    assert call("align", f"run={trained}", *files, f"gold={path}", f"output={here / 'links'}") == 0
    out, err = capfd.readouterr()
    assert "shift=auto: no validation links" in err
    found = rates(out)
    assert set(found) == {"attention, shift 0", "attention, shift 1", "saliency", BOTH, *WITHOUT_MODEL}
    assert re.search(r"^attention, shift 0 \*", out, re.MULTILINE)
    for name, line in (
        ("attention, shift 0", ["shift=0"]),
        ("attention, shift 1", ["shift=1"]),
        ("saliency", ["method=saliency"]),
        (BOTH, ["method=both"]),
    ):
        assert call("align", f"run={trained}", *files, *line, f"output={here / name}") == 0
        assert call("align", f"links={here / name}", f"gold={path}", *files) == 0
        without_model = [found[own] for own in WITHOUT_MODEL]
        assert list(rates(capfd.readouterr().out).values()) == [found[name], *without_model]
    assert read(here / "links") == read(here / "attention, shift 0")
    # The model has learnt a language of which word n is the translation of word n.
    assert float(found["saliency"]) < 50


def test_gold_without_sure_links_has_no_recall(here: Path, capfd: Capture) -> None:
    links, possible = write_lines(here / "links", ["0-0 1-1"]), write_lines(here / "gold", ["0p0"])
    assert call("align", f"links={links}", f"gold={possible}") == 0
    assert re.search(r"links +50\.0 % +50\.0 % +-$", capfd.readouterr().out, re.MULTILINE)


def test_sentences_of_any_number_are_scored(here: Path, capfd: Capture) -> None:
    """In the NAACL form on both sides nothing tells how many there are; nor does it matter."""
    links = write_lines(here / "links", ["999999999 1 1", "20030101 0 0", "20030101 0 1"])
    numbered = write_lines(here / "gold", ["20030101 0 0 S", "7 2 2 S"])
    assert call("align", f"links={links}", f"gold={numbered}") == 0
    out = capfd.readouterr().out
    assert list(rates(out).values()) == ["60.0"]  # 1 of 3 links is right, and 1 of 2 is found
    assert "3 sentence pairs; gold: 2 sure links" in out


def test_measurements_are_named_by_what_is_not_as_it_comes(
    trained: Path, here: Path, files: list[str], capfd: Capture
) -> None:
    run, path = copied(trained, here), gold(here / "gold")
    tables = []
    for line in (["threshold=0.3"], ["head=0"], [], ["threshold=0.3", "method=both"]):
        assert call("align", f"run={run}", *files, f"gold={path}", *line) == 0
        tables.append(rates(capfd.readouterr().out))
    kept = [json.loads(own.read_text(encoding="utf-8")) for own in (run / "alignments").iterdir()]
    by_name = {own["gold"]: own["rates"]["saliency"]["aer"] for own in kept}
    # With method=both, the threshold is one of agreement: links by one kind of evidence are those without it.
    assert [tables[0]["saliency"], tables[2]["saliency"]] == [f"{100 * by_name[name]:.1f}" for name in (LINKS, "gold")]
    assert tables[2]["saliency"] == tables[3]["saliency"] != tables[0]["saliency"]
    assert tables[0][BOTH] == tables[2][BOTH] != tables[3][BOTH]
    assert sorted(own["gold"] for own in kept) == ["gold", "gold, head=0", LINKS]
    assert {own["shift_from"] for own in kept} == {"default"}


def test_runs_of_unnamed_languages_may_face_each_other(trained: Path, here: Path, files: list[str]) -> None:
    for name in ("there", "back"):
        Run(copied(trained, here / name)).note(languages=["source", "target"])
    runs = [f"run={here / 'there' / trained.name}", f"reverse={here / 'back' / trained.name}"]
    assert call("align", *runs, *files, f"output={here / 'links'}") == 0


def test_a_folder_of_runs_is_no_run(trained: Path, here: Path, files: list[str], capfd: Capture) -> None:
    copied(trained, here / "sweep")
    assert call("align", f"run={here / 'sweep'}", *files) == 1
    assert f"sweep is not a run, but contains runs: {trained.name}. Give one of them." in capfd.readouterr().err


@pytest.mark.parametrize("shift", [0, 1])
def test_the_shift_is_chosen_on_validation_links(
    shift: int, trained: Path, here: Path, files: list[str], capfd: Capture
) -> None:
    """Links of one shift as validation gold make `auto` choose that shift, whatever the gold of the test says."""
    for number in (0, 1):
        assert call("align", f"run={trained}", *files, f"shift={number}", f"output={here / str(number)}") == 0
    valid = [word.replace("source=", "valid_source=").replace("target=", "valid_target=") for word in files]
    valid += [f"valid_gold={here / str(shift)}", f"gold={here / str(1 - shift)}"]
    capfd.readouterr()
    assert call("align", f"run={trained}", *files, *valid, f"output={here / 'chosen'}") == 0
    out, err = capfd.readouterr()
    assert re.search(rf"is .*0\.0 % with shift {shift}.* \(shift {shift}\)", err)
    assert rates(out)[f"attention, shift {1 - shift}"] == "0.0"
    assert read(here / "chosen") == read(here / str(shift))


def test_the_runs_own_sets_are_taken(trained: Path, text: Path, here: Path, capfd: Capture) -> None:
    """Without files it is the test set; the links of the own validation set may come from a file."""
    assert call("align", f"run={trained}", f"output={here / 'own'}") == 0
    line = [f"source={text / 'test.de'}", f"target={text / 'test.en'}", f"output={here / 'named'}"]
    assert call("align", f"run={trained}", *line) == 0
    assert read(here / "own") == read(here / "named")
    assert call("align", f"run={trained}", "split=valid", f"output={here / 'valid'}", "shift=1") == 0
    capfd.readouterr()
    assert call("align", f"run={trained}", f"valid_gold={here / 'valid'}", f"output={here / 'chosen'}") == 0
    assert "on the 20 validation pairs" in capfd.readouterr().err
    assert len(read(here / "chosen")) == 20


@pytest.mark.parametrize("how", SYMMETRIZATIONS)
def test_two_directions_are_joined(
    how: str, trained: Path, back: Path, here: Path, files: list[str], capfd: Capture
) -> None:
    both = [f"run={trained}", f"reverse={back}", *files, f"symmetrize={how}"]
    assert call("align", *both, f"output={here / 'both'}") == 0
    assert call("align", f"run={trained}", *files, f"output={here / 'one'}") == 0
    turned = [files[0].replace("source=", "target="), files[1].replace("target=", "source=")]
    assert call("align", f"run={back}", *turned, f"output={here / 'other'}") == 0
    other = [{(s, t) for t, s in line} for line in read(here / "other")]
    expected = [symmetrize(*line, how) for line in zip(read(here / "one"), other, strict=True)]
    assert read(here / "both") == expected
    if how == "union":
        capfd.readouterr()
        assert call("align", *both, f"gold={gold(here / 'gold')}") == 0
        found = rates(capfd.readouterr().out)
        names = {f"{run}, {look}" for run in ("run", "reverse") for look in ("attention, shift 0", "saliency")}
        evidence = ("attention, shift 0", "saliency", "attention, shift 0 + saliency")
        joined = {f"union of {each}" for each in evidence}
        assert names | joined <= set(found)
        assert call("align", f"links={here / 'both'}", f"gold={here / 'gold'}") == 0
        assert list(rates(capfd.readouterr().out).values()) == [found["union of attention, shift 0"]]


@pytest.mark.parametrize("method", ["attention", "saliency"])
def test_the_soft_matrix(method: str, trained: Path, back: Path, here: Path, files: list[str], capfd: Capture) -> None:
    line = [f"run={trained}", *files, f"method={method}", f"matrix={here / 'matrix'}"]
    assert call("align", *line, f"output={here / 'links'}") == 0
    records = [json.loads(row) for row in (here / "matrix").read_text(encoding="utf-8").splitlines()]
    assert [" ".join(record["source"]) for record in records] == [row[0] for row in ROWS]
    assert [" ".join(record["target"]) for record in records] == [row[1] for row in ROWS]
    for record, links in zip(records, read(here / "links"), strict=True):
        weights = np.array(record["weights"]).reshape(len(record["target"]), len(record["source"]))
        assert (weights >= 0).all()
        assert (weights.sum(1) <= 1.001).all()
        # Five digits may hide who has the most.
        assert all(weights[target, source] == weights[target].max() for source, target in links)
    capfd.readouterr()
    assert call("align", *line, f"reverse={back}", "words=char") == 0
    assert capfd.readouterr().out == ""  # the matrix is what was asked for
    for row in (here / "matrix").read_text(encoding="utf-8").splitlines():
        record = json.loads(row)
        assert all(len(char) == 1 for side in ("source", "target") for char in record[side])
        shape = (len(record["target"]), len(record["source"]))
        if all(shape):
            assert np.array(record["weights"]).shape == np.array(record["reverse"]).T.shape == shape


def test_a_threshold_links_every_strong_pair(trained: Path, here: Path, files: list[str]) -> None:
    line = [f"run={trained}", *files, "shift=0"]
    assert call("align", *line, "threshold=0.3", f"output={here / 'links'}", f"matrix={here / 'matrix'}") == 0
    for row, links in zip(
        (here / "matrix").read_text(encoding="utf-8").splitlines(), read(here / "links"), strict=True
    ):
        weights = np.array(json.loads(row)["weights"])
        assert all(weights[target, source] >= 0.29999 for source, target in links)
        assert (weights > 0.30001).sum() <= len(links)


def test_a_model_without_attention_has_its_saliency(
    unattentive: Path, here: Path, files: list[str], capfd: Capture
) -> None:
    line = [f"run={unattentive}", *files, "method=saliency", f"gold={gold(here / 'gold')}"]
    assert call("align", *line, f"output={here / 'links'}") == 0
    assert set(rates(capfd.readouterr().out)) == {"saliency", *WITHOUT_MODEL}
    assert len(read(here / "links")) == len(ROWS)


def test_a_pair_that_is_too_long_gets_no_links(trained: Path, here: Path, capfd: Capture) -> None:
    sides = [write_lines(here / name, ["eins zwei", word * 30]) for name, word in (("a", "eins "), ("b", "one "))]
    line = [f"source={sides[0]}", f"target={sides[1]}", "max_length=25", "shift=0"]
    assert call("align", f"run={trained}", *line) == 0
    out, err = capfd.readouterr()
    assert re.fullmatch(r"\d-0 \d-1\n\n", out)
    assert re.fullmatch(
        r"warning: a, pair 2 has \d+ pieces on a side, more than max_length=25; it gets no links.\n", err
    )


RUN = ["run={run}", "source={here}/a", "target={here}/b"]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ([], ["Give run=checkpoints/NAME to make links", "links=FILE gold=FILE"]),
        (["run={here}/nubmers"], ["There is no run", "'numbers'"]),
        (["run=[{run},{run}]"], ["nmt.align uses one model"]),
        (["run={none}", *RUN[1:], "method=both"], ["method=both needs attention", "method=saliency"]),
        (["run={none}", *RUN[1:]], ["method=attention needs attention", "decoder=none", "method=saliency"]),
        ([*RUN, "reverse={run}"], ["translates de to en", "must translate en to de"]),
        ([*RUN, "reverse={here}/nowhere"], ["There is no run"]),
        (RUN[:2], ["source= needs target= as well"]),
        ([RUN[0], RUN[1], "target={here}/e"], ["a has 2 lines", "e has 3"]),
        ([RUN[0], RUN[1], "target={here}/c"], ["There is no file", "c"]),
        ([*RUN, "split=test"], ["split= and source= cannot be combined"]),
        ([RUN[0], "split=tset"], ["has no split 'tset'"]),
        ([*RUN, "gold={here}/three"], ["three has 3 lines and the text has 2 lines"]),
        ([*RUN, "gold={here}/far"], ["far, sentence pair 2: the link 0-1", "word 1 of the target, which has 1 word "]),
        ([*RUN, "gold={here}/bad"], ["bad, line 2: '0_0' is not a word link"]),
        ([*RUN, "gold={here}/good", "gold_base=1"], ["good, line 1: '0-0' has word 0, but the setting says"]),
        ([*RUN, "gold={here}/good", "gold_base=2"], ["gold_base=2: must be 0 or 1"]),
        ([*RUN, "valid_source={here}/a"], ["valid_source= needs valid_target= as well"]),
        ([*RUN, "valid_source={here}/a", "valid_target={here}/b"], ["need valid_gold= as well"]),
        ([*RUN, "method=lime"], ["method=lime: must be attention, saliency or both"]),
        ([*RUN, "shift=2"], ["shift=2: must be 0, 1 or auto"]),
        ([*RUN, "shift=1", "method=saliency"], ["shift=1 works only with attention"]),
        ([*RUN, "threshold=0"], ["threshold=0: must be greater than 0 and at most 1, or null"]),
        ([*RUN, "threshold=much"], ["threshold=much: must be a number, greater than 0 and at most 1, or null"]),
        ([*RUN, "symmetrize=union", "method=both"], ["symmetrize=union combines", "reverse=RUN"]),
        ([*RUN, "symmetrize=agreement"], ["symmetrize=agreement combines two directions", "reverse=RUN"]),
        ([*RUN, "reverse={back}", "symmetrize=grow"], ["symmetrize=grow: must be one of agreement", "grow-diag-final"]),
        ([*RUN, "words=tokens"], ["words=tokens is not known", "whitespace, moses, char"]),
        ([*RUN, "languages=de"], ["languages=de: give two codes"]),
        ([*RUN, "head=1"], ["head=1 does not exist"]),
        ([*RUN, "max_length=0"], ["max_length=0: must be at least 1"]),
        ([*RUN, "output={here}/a"], ["output=", "is the input source="]),
        ([*RUN, "output={here}/numbers"], ["numbers is a folder. Name a file"]),
        ([*RUN, "output={here}/no/links"], ["does not exist. Create it: mkdir -p", "no"]),
        ([*RUN, "output={here}/x", "matrix={here}/x"], ["are both"]),
        (["links={here}/good"], ["give gold=FILE as well"]),
        (["links={here}/good", "gold={here}/three"], ["good has 2 lines", "three has 3"]),
        (["links={here}/good", "gold={here}/godo"], ["There is no file", "'good'"]),
        (["links={here}/good", "gold={here}/good", "run={run}"], ["run= is for making links"]),
        (["links={here}/good", "gold={here}/good", "output={here}/x"], ["output= is for making links"]),
        (["links={here}/good", "gold={here}/good", "valid_target={here}/b"], ["valid_target= is for making links"]),
        (["links={here}/good", "gold={here}/good", "valid_words=char"], ["valid_words= is for making links"]),
        (["links={here}/good", "gold={here}/good", "words=typo"], ["words=typo is not known", "whitespace, moses"]),
        (["links={here}/good", "gold={here}/good", *RUN[1:], "words=moses"], ["words=moses", "languages=[de,en]"]),
        (["links={here}/far", "gold={here}/good", *RUN[1:]], ["far, sentence pair 2", "word 1 of the target"]),
        (["links={here}/good", "gold={here}/none"], ["none contains no links", "Give another file: gold=FILE"]),
        ([*RUN, "gold={here}/none"], ["none contains no links", "Give another file: gold=FILE"]),
        (["links={here}/good", "gold={here}/good", "head=1"], ["head= is for making links"]),
        (["links={here}/good", "gold={here}/good", "checkpoint=last"], ["checkpoint= is for making links"]),
        (["links={here}/good", "gold={here}/good", "shift=1"], ["shift= is for making links"]),
        (["links={here}/good", "gold={here}/good", "method=saliency"], ["method= is for making links"]),
        (["{here}/numbers"], ["has no key. Did you mean run="]),
    ],
    ids=lambda value: value[-1] if value and "=" in value[-1] else "",
)
def test_an_alignment_that_cannot_be(
    line: list[str], parts: list[str], here: Path, trained: Path, unattentive: Path, back: Path, capfd: Capture
) -> None:
    run = copied(trained, here)
    for name, lines in (
        ("a", ["eins zwei", "drei"]),
        ("b", ["one two", "three"]),
        ("e", ["one", "two", "three"]),
        ("good", ["0-0 1p1", "0-0"]),
        ("three", ["0-0"] * 3),
        ("far", ["0-0", "0-0 0-1"]),
        ("bad", ["0-0", "0_0"]),
        ("none", ["", ""]),
    ):
        write_lines(here / name, lines)
    filled = [word.format(run=run, here=here, none=unattentive, back=back) for word in line]
    message = refusal(capfd, here, "align", *filled)
    for part in parts:
        assert part in message
