"""The cache of trained tokenizers, so that none is trained twice on the same text."""

import contextlib
import hashlib
import json
import shutil
from pathlib import Path

from nmt.data.dataset import Split
from nmt.system.errors import UserError
from nmt.system.files import appearing
from nmt.text.tokenizer import Tokenizer, load_tokenizer
from nmt.text.tokenizer_trainer import TokenizerTrainer

_NOTES = "notes.json"


def trained(trainer: TokenizerTrainer, split: Split, cache: Path) -> tuple[Tokenizer, list[str]]:
    """The result of `trainer.train` for a split, from the cache if it is there.

    If the cache is damaged or cannot be written, the tokenizer is trained again.

    Raises:
        UserError: see `TokenizerTrainer.train`.
    """
    if trainer.models:
        return trainer.train(split.source, split.target)
    name = hashlib.sha256(f"{trainer.identity} {split.fingerprint()}".encode()).hexdigest()
    folder = cache / f"tokenizer-{name[:40]}"
    with contextlib.suppress(OSError, UserError, ValueError, LookupError, TypeError):
        about = json.loads((folder / _NOTES).read_text("utf-8"))
        tokenizer = load_tokenizer(folder)
        if tokenizer.fingerprint == about["fingerprint"]:
            return tokenizer, [str(note) for note in about["notes"]]
    shutil.rmtree(folder, ignore_errors=True)  # if it exists, it is damaged
    tokenizer, notes = trainer.train(split.source, split.target)
    with contextlib.suppress(OSError, UserError), appearing(folder) as temporary:
        tokenizer.save(temporary)
        about = {"fingerprint": tokenizer.fingerprint, "notes": notes}
        (temporary / _NOTES).write_text(json.dumps(about), encoding="utf-8")
    return tokenizer, notes
