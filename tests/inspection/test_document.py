"""The document of a translation, for every family of decoders: what it says agrees with itself and with the search."""

import base64
import functools
import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nmt.inspection.details import DETAILS, described_search, documented, included, searched, translate
from nmt.inspection.document import Style, direction, document
from nmt.inspection.steps import inspect, tokens_of
from nmt.model import Source
from nmt.text.lexicon import TRANSLATIONS, Lexicon
from nmt.text.tokenizer import EOS
from nmt.translation.request import Request
from nmt.translation.shortlist import Shortlist
from nmt.translation.translator import Translator
from nmt.translation.views import END
from tests.catalogue import ATTENTIVE, DECODERS, SCORES, WINDOWED
from tests.inspection.small import SENTENCE, style, translator
from tests.test_configs import tokenizer

Json = dict[str, Any]
FAMILIES = [
    *[(f"decoder={decoder}",) for decoder in DECODERS],
    ("decoder=luong", "attention.heads=2", "attention.size=6"),
    ("decoder=bahdanau", "decoder.layers=2", "decoder.multi_step=true"),
    ("decoder=bahdanau", "attention.coverage=true"),
    ("decoder=luong", "attention/read=hard"),
    ("encoder=transformer", "decoder=transformer"),
    *[("decoder=luong", *window) for window in WINDOWED],
    *[("decoder=luong", f"attention/score={score}") for score in SCORES if score not in ("dot", "scaled_dot")],
]


@functools.cache
def full(overrides: tuple[str, ...]) -> Json:
    made = translator(overrides)
    return translate(made, Request(SENTENCE), style(made), DETAILS)


def cube(part: Json, name: str = "data") -> Any:
    return np.array(part[name], dtype=float).reshape(part["shape"])


every = pytest.mark.parametrize("overrides", FAMILIES, ids=" ".join)


@every
def test_log_probabilities_of_pieces_add_up_to_those_of_the_search(overrides: tuple[str, ...]) -> None:
    for hypothesis in full(overrides)["hypotheses"]:
        total = sum(piece["log_prob"] for piece in hypothesis["pieces"])
        assert total == pytest.approx(hypothesis["log_prob"], abs=2e-4)


@every
def test_pieces_stand_in_their_words_and_words_in_their_text(overrides: tuple[str, ...]) -> None:
    whole = full(overrides)
    for side in (whole["source"], *whole["hypotheses"]):
        assert [side["text"][word["start"] : word["end"]] for word in side["words"]] == [
            word["text"] for word in side["words"]
        ]
        assert [word["text"] for word in side["words"]] == side["text"].split()
        for piece in side["pieces"]:
            if piece["word"] is not None:
                word = side["words"][piece["word"]]
                assert word["start"] <= piece["start"] < word["end"]
    assert whole["source"]["pieces"][-1] == {"text": END, "start": None, "end": None, "word": None}


@every
def test_alternatives_are_the_best_pieces_and_contain_the_chosen_one_at_its_rank(overrides: tuple[str, ...]) -> None:
    made = translator(overrides)
    (ranked,) = made.translate_chunk([SENTENCE])
    source, target = tokens_of(made.tokenizer, ranked[0])
    inspected = inspect(made, source, target)
    assert torch.logsumexp(inspected.log_probs, 1).abs().max() < 1e-4
    for step, piece in enumerate(full(overrides)["hypotheses"][0]["pieces"]):
        values = [each["log_prob"] for each in piece["alternatives"]]
        assert values == sorted(values, reverse=True)
        assert values[0] == pytest.approx(float(inspected.log_probs[step].max()), abs=1e-5)
        assert [each["rank"] for each in piece["alternatives"]] == [1, 2, 3, 4, 5]
        better = int((inspected.log_probs[step] > inspected.log_probs[step, target[step]]).sum())
        if better < 5:
            assert piece["alternatives"][better]["text"] == piece["text"]


@every
def test_stages_lead_to_the_weights(overrides: tuple[str, ...]) -> None:
    for hypothesis in full(overrides)["hypotheses"]:
        if "decoder=none" in overrides:
            assert hypothesis["stages"] is None
            assert hypothesis["weights"]["cross"] is None
            assert hypothesis["alignment"] is None
            continue
        cross = hypothesis["weights"]["cross"]
        assert cross["heads"] == [head for layer in hypothesis["stages"] for head in layer["heads"]]
        shown = np.concatenate([cube(layer, "weights") for layer in hypothesis["stages"]])
        np.testing.assert_allclose(shown, cube(cross), atol=2e-5)
        for layer in hypothesis["stages"]:
            energies, visible = cube(layer, "energies"), cube(layer, "visible") == 1
            energies = np.where(np.isnan(energies), -np.inf, energies)
            if layer["bias"] is not None:
                energies = energies + cube(layer, "bias")
            exponents = np.where(visible, np.exp(energies - energies.max()), 0)
            totals = exponents.sum(-1, keepdims=True)
            softmax = np.divide(exponents, totals, out=np.zeros_like(exponents), where=totals > 0)
            np.testing.assert_allclose(cube(layer, "shares"), softmax, atol=2e-4)
            factor = 1 if layer["factor"] is None else cube(layer, "factor")
            np.testing.assert_allclose(cube(layer, "weights"), softmax * factor, atol=2e-4)


def energies_of(layer: Json) -> Any:
    """[h, T, S] by the rule that docs/translation-json.md has for vectors."""
    vectors = layer["vectors"]
    left, right = (cube(vectors[name]) for name in ("left", "right"))
    scale = np.array(vectors["scale"])[:, None, None]
    if vectors["kind"] == "product":
        return scale * left @ right.swapaxes(-1, -2)
    sums = left[:, :, None] + right[:, None]
    if vectors["w"] is not None:
        weights = cube(layer, "weights")
        sums = sums + cube(vectors["w"])[:, :, None] * (weights.cumsum(1) - weights)[..., None]
    return (np.tanh(sums) * cube(vectors["v"])[:, :, None]).sum(-1)


@every
def test_energies_come_from_their_vectors(overrides: tuple[str, ...]) -> None:
    for hypothesis in full(overrides)["hypotheses"]:
        for layer in hypothesis["stages"] or []:
            vectors, energies = layer["vectors"], cube(layer, "energies")
            known = ~np.isnan(energies)
            np.testing.assert_allclose(energies_of(layer)[known], energies[known], atol=2e-3)
            assert [len(cube(vectors[name])) for name in ("queries", "keys", "values")] == [len(layer["heads"])] * 3
            if vectors["kind"] == "product" and layer["score"] != "cosine":
                assert vectors["left"]["data"] == vectors["queries"]["data"]
        if hypothesis["stages"] and hypothesis["readout"] is not None:
            assert hypothesis["readout"]["shape"][0] == len(hypothesis["pieces"])


@pytest.mark.parametrize(
    ("decoder", "symbol", "behind"),
    [("bahdanau", "s_(t-1)", 2), ("luong", "s_t", 1), ("conditional", "s'_t", 1), ("conv", "d_t", 1)],
)
def test_the_state_that_asks_is_named(decoder: str, symbol: str, behind: int) -> None:
    asks = full((f"decoder={decoder}",))["hypotheses"][0]["stages"][0]["vectors"]["asks"]
    assert (asks["symbol"], asks["behind"]) == (symbol, behind)


def test_bahdanau_asks_with_the_state_before_the_step_and_luong_with_that_of_the_step() -> None:
    """The first query of bahdanau is the decoder's first state, whatever the step; that of luong has moved from it."""
    for decoder, is_first in (("bahdanau", True), ("luong", False)):
        made = translator((f"decoder={decoder}",))
        (source, target) = tokens_of(made.tokenizer, made.translate_chunk([Request(SENTENCE)])[0][0])
        inspected = inspect(made, source, target, vectors=True)
        with torch.inference_mode():
            model, tokens = made.stepper.models[0], torch.tensor([[*source, EOS]])
            state: Any = model.encode(Source(tokens, torch.ones_like(tokens, dtype=torch.bool)))[1]
        vectors = inspected.layers[0].vectors
        assert vectors is not None
        assert torch.allclose(vectors.queries[0, 0], state.hidden[0, -1], atol=1e-5) == is_first


def test_stages_name_the_mechanism_and_its_window() -> None:
    (layer,) = full(("decoder=luong", "attention/window=local_p"))["hypotheses"][0]["stages"]
    assert (layer["score"], layer["window"], layer["read"]) == ("additive", "local_p", "soft")
    assert layer["equation"] == "e_tj = v^T tanh(W q_t + U k_j)"
    assert layer["sigma"] == layer["radius"] / 2
    centres = np.array(layer["centres"]).reshape(layer["shape"][:2])
    positions = np.arange(layer["shape"][2])
    gaussian = np.exp(-((positions - centres[..., None]) ** 2) / (2 * layer["sigma"] ** 2))
    np.testing.assert_allclose(cube(layer, "factor"), gaussian, atol=1e-5)
    (monotonic,) = full(("decoder=luong", "attention/window=local_m"))["hypotheses"][0]["stages"]
    last = monotonic["shape"][2] - 1
    assert monotonic["centres"] == [float(min(step, last)) for step in range(monotonic["shape"][1])]
    assert (monotonic["window"], monotonic["sigma"]) == ("local_m", None)
    (hard,) = full(("decoder=luong", "attention/read=hard"))["hypotheses"][0]["stages"]
    assert hard["read"] == "hard"
    assert hard["slots"] == cube(hard, "weights").argmax(-1).ravel().tolist()


@every
def test_the_beam_is_a_tree_that_ends_in_the_hypotheses(overrides: tuple[str, ...]) -> None:
    whole = full(overrides)
    nodes = whole["beam"]["nodes"]
    assert nodes[0]["parent"] is None
    for number, node in enumerate(nodes):
        assert node["id"] == number
        if number:
            parent = nodes[node["parent"]]
            assert node["parent"] < number
            assert parent["state"] == "open"
            assert parent["step"] == node["step"] - 1
            assert node["total"] == pytest.approx(parent["total"] + node["log_prob"], abs=1e-4)
    for _, step in itertools.groupby(nodes[1:], key=lambda node: node["step"]):
        assert len(list(step)) <= 3
    for rank, hypothesis in enumerate(whole["hypotheses"]):
        (end,) = [node for node in nodes if node["hypothesis"] == rank]
        assert end["state"] == "ended"
        assert end["total"] == pytest.approx(hypothesis["log_prob"], abs=1e-4)
        assert end["score"] == hypothesis["score"]
        texts = []
        at = end
        while at["parent"] is not None:
            texts.append(at["text"])
            at = nodes[at["parent"]]
        assert texts[::-1] == [piece["text"] for piece in hypothesis["pieces"]]


def test_the_tree_of_a_search_with_a_shortlist_has_pieces() -> None:
    made = translator(("decoder=bahdanau",))
    size = made.tokenizer.target.size
    common = np.arange(EOS + 1, size, 7, dtype=np.int32)
    lexicon = Lexicon(np.full((size, TRANSLATIONS), -1, dtype=np.int32), common)
    made = replace(made, shortlist=Shortlist(lexicon, 1, size, joint=False))
    _, beam = searched(made, Request(SENTENCE), tree=True)
    assert beam is not None
    tokens = {node.token for node in beam.nodes}
    assert tokens - {None, EOS} <= set(common.tolist())
    assert {token for hypothesis in beam.hypotheses for token in hypothesis} <= tokens


def test_watching_changes_nothing_and_greedy_search_is_a_chain() -> None:
    made = translator(("decoder=bahdanau",), beam=1)
    whole = translate(made, Request(SENTENCE), style(made), DETAILS)
    ((plain,),) = made.translate_chunk([SENTENCE])
    assert whole["hypotheses"][0]["text"] == plain.text
    assert whole["hypotheses"][0]["log_prob"] == pytest.approx(plain.log_prob, abs=1e-5)
    nodes = whole["beam"]["nodes"]
    assert [node["parent"] for node in nodes] == [None, *range(len(nodes) - 1)]
    assert [node["text"] for node in nodes[1:]] == plain.pieces


def test_nothing_is_there_that_was_not_asked_for_and_json_holds_it() -> None:
    made = translator(("decoder=bahdanau",))
    (ranked,) = made.translate_chunk([SENTENCE])
    plain = document(ranked, Style(made.tokenizer.target, aligned=False))
    assert plain["beam"] is plain["model"] is plain["search"] is None
    for hypothesis in plain["hypotheses"]:
        assert hypothesis["alignment"] is hypothesis["weights"] is hypothesis["stages"] is None
        assert all(piece["log_prob"] is piece["alternatives"] is None for piece in hypothesis["pieces"])
    for overrides in FAMILIES:
        json.loads(json.dumps(full(overrides), allow_nan=False))


def test_compact_weights_are_bytes() -> None:
    made = translator(("encoder=transformer", "decoder=transformer"))
    (ranked,) = made.translate_chunk([SENTENCE])
    whole = documented(made, ranked, Style(made.tokenizer.target, compact=True), included(["self_weights"]))
    exact = documented(made, ranked, style(made), included(["self_weights"]))
    for use in ("cross", "encoder", "decoder"):
        packed, plain = (each["hypotheses"][0]["weights"][use] for each in (whole, exact))
        assert packed["data"] is plain["bytes"] is None
        values = np.frombuffer(base64.b64decode(packed["bytes"]), np.uint8).reshape(packed["shape"]) / 255
        np.testing.assert_array_equal(values == 0, cube(plain) == 0)
        expected = np.where(values > 0, np.maximum(cube(plain), 1 / 255), 0)
        np.testing.assert_allclose(values, expected, atol=0.5 / 255 + 1e-6)
    assert plain["shape"][1] == plain["shape"][2] == len(ranked[0].pieces)


def test_a_prefix_is_forced_and_the_rest_is_not() -> None:
    made = translator(("decoder=bahdanau",))
    hypothesis = translate(made, Request(SENTENCE, "one two"), style(made), included(["alternatives"]))["hypotheses"][0]
    forced = [piece["forced"] for piece in hypothesis["pieces"]]
    assert hypothesis["text"].startswith("one two")
    assert forced == sorted(forced, reverse=True)
    assert forced[0]
    assert not forced[-1]


@pytest.mark.parametrize("decoder", ATTENTIVE)
def test_a_length_limit_is_kept(decoder: str) -> None:
    made = translator((f"decoder={decoder}",))
    whole = translate(made, Request(SENTENCE, max_length=2), style(made), frozenset())
    assert len(whole["hypotheses"][0]["pieces"]) <= 2


def test_empty_lines_and_lines_in_parts_have_documents() -> None:
    made = translator(("decoder=bahdanau",))
    blank = translate(made, Request("  "), style(made), DETAILS)
    assert blank["hypotheses"][0]["text"] == ""
    assert blank["beam"] is None
    words = tokenizer("unigram")
    short = Translator(made.models, words, made.search, max_source_length=4, length_ratio=1.0, extra_length=2)
    long = translate(short, Request("eins zwei drei vier eins zwei"), style(short), DETAILS)
    assert [piece["text"] for piece in long["source"]["pieces"]].count(END) > 1
    assert long["beam"] is long["hypotheses"][0]["stages"] is None


def test_text_without_spaces_has_pieces_for_words() -> None:
    made = translator(("decoder=bahdanau",))
    (ranked,) = made.translate_chunk(["我爱你们"])
    source = document(ranked, style(made))["source"]
    assert not source["spaced"]
    assert "".join(word["text"] for word in source["words"]) == "我爱你们"


def test_direction_is_that_of_the_first_letter() -> None:
    assert [direction(text) for text in ("abc", "123 שלום", "«مرحبا»", "", "12")] == ["ltr", "rtl", "rtl", "ltr", "ltr"]


def test_searches_are_described() -> None:
    assert described_search(translator(("decoder=bahdanau",))) == {
        "choice": "beam",
        "beam_size": 3,
        "length_penalty": 1.0,
        "coverage_penalty": 0.0,
        "nbest": 2,
    }
    assert described_search(translator(("decoder=bahdanau",), beam=1)) == {"choice": "greedy", "nbest": 1}
