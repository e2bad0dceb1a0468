"""The presets that are called after papers, held to what the papers say."""

import re

import pytest
from omegaconf import DictConfig, ListConfig, OmegaConf

from nmt.config.composition import compose
from tests.catalogue import options

#: What the papers say, for each preset that is one: sizes, wiring, mechanism.
RNNSEARCH = {
    "model.embedding_size": 620, "encoder.size": 1000, "decoder.size": 1000, "attention.size": 1000,
    "decoder.readout.size": 500, "decoder": "Bahdanau", "decoder.previous_state": True, "decoder.readout": "Maxout",
    "decoder.first_state": "backward", "attention.score": "Additive", "model.tie_embeddings": "none",
}  # fmt: skip
TABLE_4 = {
    "model.embedding_size": 1000, "encoder.size": 1000, "encoder.layers": 4, "encoder.bidirectional": False,
    "encoder.cell": "lstm", "decoder": "Luong", "decoder.size": 1000, "decoder.layers": 4,
    "decoder.input_feeding": True, "decoder.readout": "Tanh", "decoder.readout.size": 1000,
    "trainer.max_source_length": 50, "model.tie_embeddings": "none", "attention.heads": 1,
}  # fmt: skip
TRANSFORMER_BASE = {
    "model.embedding_size": 512, "encoder.size": 512, "decoder.size": 512, "encoder.layers": 6, "decoder.layers": 6,
    "encoder.feed_forward_size": 2048, "decoder.feed_forward_size": 2048, "attention.heads": 8,
    "encoder.self_attention.heads": 8, "decoder.self_attention.heads": 8,
    "encoder.norm": "post", "decoder.norm": "post",
    "model.dropout": 0.1, "trainer.label_smoothing": 0.1, "optimizer.betas": [0.9, 0.98], "optimizer.eps": 1e-9,
    "schedule": "InverseSquareRoot", "schedule.warmup_steps": 4000, "encoder.positions": "Sinusoidal",
    "model.tie_embeddings": "all", "encoder.branches": False, "decoder.branches": False,
}  # fmt: skip
LOCAL_M = {"attention.window": "LocalMonotonic", "attention.window.radius": 10}
LOCAL_P = {"attention.window": "LocalPredictive", "attention.window.radius": 10}
GLOBAL = {"attention.window": "Global"}
PAPERS: dict[str, dict[str, object]] = {
    "bahdanau2015_rnnsearch30": RNNSEARCH | {"trainer.max_source_length": 30, "trainer.max_target_length": 30},
    "bahdanau2015_rnnsearch50": RNNSEARCH | {"trainer.max_source_length": 50, "trainer.max_target_length": 50},
    "luong2015_global_location": TABLE_4 | GLOBAL | {"attention.score": "Location", "attention.score.positions": 51},
    "luong2015_global_dot": TABLE_4 | GLOBAL | {"attention.score": "Dot"},
    "luong2015_global_general": TABLE_4 | GLOBAL | {"attention.score": "General"},
    "luong2015_local_m_dot": TABLE_4 | LOCAL_M | {"attention.score": "Dot"},
    "luong2015_local_m_general": TABLE_4 | LOCAL_M | {"attention.score": "General"},
    "luong2015_local_p_dot": TABLE_4 | LOCAL_P | {"attention.score": "Dot"},
    "luong2015_local_p_general": TABLE_4 | LOCAL_P | {"attention.score": "General"},
    "xu2015_hard": {
        "attention.read": "Hard", "attention.read.objective": "sampled", "attention.score": "Additive",
        "decoder": "Bahdanau", "decoder.first_state": "mean", "decoder.readout.word": True,
        "decoder.readout": "Tanh", "trainer.label_smoothing": 0, "attention.read.expected": 0.5,
    },
    "nematus2017_conditional": {
        "model.embedding_size": 500, "encoder.size": 1024, "decoder.size": 1024, "decoder": "Conditional",
        "decoder.first_state": "mean", "decoder.readout": "Tanh", "decoder.readout.size": 500, "attention.size": 2048,
    },
    "vaswani2017_base": TRANSFORMER_BASE,
    "ahmed2017_weighted_base": TRANSFORMER_BASE | {"encoder.branches": True, "decoder.branches": True},
    "gehring2017_convs2s": {
        "model.embedding_size": 512, "encoder.size": 512, "decoder.size": 512, "encoder.layers": 20,
        "decoder.layers": 20, "encoder.kernel_size": 3, "decoder.kernel_size": 3, "attention.score": "Dot",
        "encoder.positions": "Learned",
    },
    "seq2seq_with_attention": {
        "decoder": "Bahdanau", "decoder.readout": "FromState", "decoder.first_state": "last",
        "attention.score": "Additive",
    },
}  # fmt: skip


@pytest.mark.parametrize("choice", PAPERS)
def test_presets_are_what_their_papers_say(choice: str) -> None:
    config = compose("train", [f"experiment={choice}"])
    for key, expected in PAPERS[choice].items():
        found = OmegaConf.select(config, key)
        if isinstance(found, DictConfig):
            found = found._target_.rpartition(".")[2]
        elif isinstance(found, ListConfig):
            found = list(found)
        assert found == expected, key
    if choice.startswith("vaswani"):  # eq. 3
        assert config.optimizer.lr == pytest.approx(512**-0.5 * 4000**-0.5, rel=0.01)
    if config.attention.score._target_.endswith(".Dot") and "readout" in config.decoder:
        directions = 2 if config.encoder.bidirectional else 1
        assert config.decoder.size == directions * config.encoder.size


def test_every_preset_of_a_paper_is_held_to_it() -> None:
    assert {choice for choice in options("experiment") if re.search(r"\d{4}_", choice)} <= PAPERS.keys()


def test_the_last_of_a_setting_counts() -> None:
    assert compose("train", ["model.output_dropout=0", "model.output_dropout=0.1"]).model.output_dropout == 0.1
