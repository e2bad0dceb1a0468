"""A small configuration tree with every kind of node, and what tests ask of it."""

import pytest
from omegaconf import DictConfig

from nmt.config.composition import compose
from nmt.config.quotes import quote
from nmt.system.errors import UserError

TREE = {
    "train.yaml": """\
        # Train a translator.
        #
        #   python -m nmt.train data.files=[german.txt,english.txt]    # two files
        #
        # texts: name
        # paths: checkpoints cache
        # shown: name trainer.epochs
        defaults:
          - data: builtin
          - encoder: gru
          - attention: default
          - trainer: default
          - experiment: null
          - _self_

        name: null            # the run's folder
        resume: false         # go on
        seed: 1
        seeds: [1, 2]
        device: auto
        precision: auto
        checkpoints: checkpoints
        cache: data/cache
        twice: ${encoder.size}
        model:
          dropout: 0.3
        """,
    "translate.yaml": """\
        # Translate sentences.
        #
        #   python -m nmt.translate run=checkpoints/NAME    # an example
        #
        # paths: run input output
        # lists: run
        defaults:
          - search: beam
          - _self_
        run: ???
        input: null
        output: null
        """,
    "data/builtin.yaml": "# texts: source target\nsource: en\ntarget: de\nseed: 17\n",
    "data/files.yaml": "# paths: files\n# lists: files\nfiles: null\nsource: null\ntarget: null\n",
    "data/text.yaml": (
        "# paths: train valid test\n# lists: test\n"
        "root: null\nsource: null\ntarget: null\ntrain: null\nvalid: null\ntest: null\n"
    ),
    "encoder/gru.yaml": "size: 256\nlayers: 1\nbidirectional: true\n",
    "encoder/lstm.yaml": "size: 256\nlayers: 1\nbidirectional: true\nforget_bias: 1.0\n",
    "attention/default.yaml": "defaults:\n  - score: additive\n  - _self_\nheads: 1\ndropout: 0.0\n",
    "attention/score/additive.yaml": "# also: bahdanau mlp\n_target_: a\n",
    "attention/score/dot.yaml": "_target_: b\n",
    "attention/score/scaled_dot.yaml": "_target_: c\n",
    "trainer/default.yaml": "_target_: t\nsteps: null\nepochs: 30\nminutes: null\nwarmup: [1, 2]\n",
    "trainer/long.yaml": "_target_: t\nsteps: null\nepochs: 90\nminutes: null\nwarmup: [1, 2]\n",
    "search/beam.yaml": "beam_size: 5\nlength_penalty: 1.0\n",
    "experiment/luong.yaml": "# @package _global_\nencoder:\n  size: 1000\n",
}


def train(*words: str) -> DictConfig:
    return compose("train", quote(words))


def refusal(*words: str, verb: str = "train") -> str:
    with pytest.raises(UserError) as caught:
        compose(verb, quote(words))
    return str(caught.value)
