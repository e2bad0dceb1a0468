"""A command, from its command line to its exit status.

    sys.argv -quote-> overrides that Hydra can parse -compose-> DictConfig -main-> action, exit status

The files, the grammar of overrides and the composition are Hydra's. Its decorator is not used: it logs to standard
output, creates folders and answers a misspelt key with the advice to add it with `+`.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from nmt.config import configuration
from nmt.config.composition import compose
from nmt.config.help_text import help_text
from nmt.config.keys import MULTIRUN, read_head
from nmt.config.quotes import quote
from nmt.system.errors import UserError, is_memory_full, missing_package
from nmt.system.files import ClosedStream, OutlivingStream, drop, full
from nmt.system.memory import bound_kernels, share_cores
from nmt.system.signals import handling, stop_signals
from nmt.system.terminal import print_message, printable

if TYPE_CHECKING:
    from omegaconf import DictConfig

    Action = Callable[[DictConfig, list[str]], int | None]

# The environment variable that `debug=true` sets: messages then come with a traceback.
DEBUG: Final = "NMT_DEBUG"
# Failures of the machine that a user can fix, in contrast to bugs of this program.
_CURABLE: Final = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT),
        *(errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EMFILE, errno.EIO),
    }
)
# Seconds to wait until the first of several processes has printed its message.
_PATIENCE: Final = 5.0
# Part of torch's error message for an operation without a deterministic algorithm.
_NOT_DETERMINISTIC: Final = "does not have a deterministic implementation"


def main(
    verb: str,
    action: Action,
    arguments: Sequence[str] | None = None,
    sweep: Callable[[list[str]], int] | None = None,
    first: Callable[[list[str]], list[str]] | None = None,
) -> int:
    """Run `action(configuration, quoted overrides)` for a command line, and return the exit status.

    `first` returns overrides to apply before those of the command line. With `-m` (Hydra's `--multirun`),
    `sweep(the other words)` runs instead, if the command has sweeps.

    A user's mistake or a failure of the machine prints one message on standard error; the status is 1. With
    `debug=true` or NMT_DEBUG=1 its traceback is printed first. If the reader of a pipe stops (`| head`), the status is
    0; after a signal it is 128 + its number (Ctrl-C: 130). Only `action`, --help, --version and --cfg write to standard
    output.
    """
    share_cores()
    bound_kernels()
    words = list(sys.argv[1:] if arguments is None else arguments)
    return guarded(f"nmt.{verb}", lambda: _run(verb, action, _take_debug(words), sweep, first))


def command(verb: str, **more: Any) -> Callable[[Action], Callable[..., int]]:
    """Decorate an action: the result runs the command for a command line, as `main` with the arguments `more`."""
    return lambda action: functools.partial(main, verb, action, **more)


def guarded(program: str, work: Callable[[], int]) -> int:
    """Run `work` and return its exit status, or the exit status for the error or signal that ended it; see `main`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, ClosedStream())
        elif getattr(getattr(sys, name), "errors", "") == "strict":  # a console may lack letters of names and help
            getattr(sys, name).reconfigure(errors="backslashreplace")
    # BLAS libraries sometimes raise floating-point flags in products whose factors and result are finite.
    warnings.filterwarnings("ignore", ".* encountered in matmul", RuntimeWarning)
    try:
        with contextlib.redirect_stderr(OutlivingStream(sys.stderr)), handling(_terminating(), _terminate):
            status = work()
        sys.stdout.flush()
    except (UserError, OSError, MemoryError, RuntimeError, ImportError, KeyboardInterrupt, _Terminated) as error:
        if not _has_message(error):
            raise
        return _ended(program, error)
    return status


def _has_message(error: BaseException) -> bool:
    """Whether an error is a user's mistake or a failure of the machine, and not a bug of this program."""
    match error:
        case UserError() | MemoryError() | BrokenPipeError():
            return True
        case OSError():
            return error.errno in _CURABLE
        case ModuleNotFoundError():
            return bool(missing_package(error))
        case RuntimeError():
            return is_memory_full(error) or _NOT_DETERMINISTIC in str(error)
    return not isinstance(error, Exception)


def _take_debug(words: list[str]) -> list[str]:
    """Remove `debug=true` from the words, and pass it on to child processes."""
    for word in words:
        if word.startswith("debug="):
            if word not in ("debug=true", "debug=false"):
                raise UserError(f"{word}: must be true or false.")
            os.environ[DEBUG] = str(int(word == "debug=true"))
    return [word for word in words if not word.startswith("debug=")]


def _ended(program: str, error: BaseException) -> int:
    """Print in one line why a command ended, and return the exit status."""
    if os.environ.get(DEBUG, "0") not in ("", "0"):
        traceback.print_exception(error)
    if not isinstance(error, UserError):
        drop(sys.stdout)
    message, status = str(error), 1
    match error:
        case BrokenPipeError():
            return 0
        case KeyboardInterrupt():
            message, status = "interrupted", 130
        case _Terminated():
            message, status = f"terminated ({error})" if str(error) != "SIGTERM" else "terminated", 128 + error.number
        case _ if is_memory_full(error):
            where = "" if isinstance(error, MemoryError) or "DefaultCPUAllocator" in message else " on the GPU"
            message = (
                f"not enough memory{where}. Give a smaller trainer.tokens_per_batch or model (training), or a smaller "
                "batch_sentences (other commands)."
            )
        case ModuleNotFoundError():
            message = missing_package(error)
        case RuntimeError():
            message = f"deterministic=true: {message.split()[0]} {_NOT_DETERMINISTIC}. Give deterministic=false."
        case OSError():
            place = f" ({error.filename})" if error.filename else ""
            message = f"{error.strerror}{place}.{' Free some space and run the command again.' if full(error) else ''}"
    with contextlib.suppress(OSError):
        print_message(f"{program}: {message}")
    return status


class _Terminated(BaseException):
    """A signal has asked the program to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def _terminating() -> list[signal.Signals]:
    """The signals that end a command, except SIGINT (Ctrl-C), which Python handles."""
    return [number for number in stop_signals() if number != signal.SIGINT]


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Unwind the program, so that half-written files are removed; further signals, except Ctrl-C, are ignored."""
    for other in _terminating():
        signal.signal(other, signal.SIG_IGN)
    raise _Terminated(number)


def _run(
    verb: str,
    action: Action,
    words: list[str],
    sweep: Callable[[list[str]], int] | None,
    first: Callable[[list[str]], list[str]] | None,
) -> int:
    from nmt import __version__

    if {"--help", "-h", "--help=all"} & {*words}:
        settings = quote([word for word in words if "=" in word and not word.startswith("-")])
        print(help_text(verb, "--help=all" in words, settings))
        return 0
    if "--version" in words:
        print(f"nmt {__version__}")
        return 0
    if any(word in MULTIRUN for word in words):
        if sweep is None:
            raise UserError("-m: only nmt.train runs sweeps. Leave out -m.")
        return sweep([word for word in words if word not in MULTIRUN])
    show = next((word for word in words if word in ("--cfg", "-c", "--cfg=job")), None)
    if show is not None:
        at = words.index(show)
        # Hydra's own spelling is `--cfg job`.
        words = words[:at] + words[at + (2 if words[at + 1 : at + 2] == ["job"] else 1) :]
    from omegaconf import OmegaConf

    with _said_once():
        overrides = quote(words)
        config = compose(verb, [*(first(overrides) if first else []), *overrides])
    if show is not None:
        printed = OmegaConf.masked_copy(config, [str(key) for key in config if key != "choices"])
        print(printable(OmegaConf.to_yaml(printed)), end="")
        return 0
    missing = sorted(OmegaConf.missing_keys(config))
    if missing:
        examples = read_head(configuration.config_folder() / f"{verb}.yaml").examples
        example = examples[0].partition(" #")[0].strip() if examples else f"nmt.{verb} --help"
        with _said_once():
            raise UserError(f"{' and '.join(f'{key}=' for key in missing)} must be given. For example: {example}")
    return action(config, overrides) or 0


@contextlib.contextmanager
def _said_once() -> Iterator[None]:
    """Let only the first process of torchrun print an error that all processes find."""
    try:
        yield
    except UserError:
        if os.environ.get("RANK", "0") in ("", "0") or "WORLD_SIZE" not in os.environ:
            raise
        time.sleep(_PATIENCE)  # torchrun ends all processes as soon as one has ended
        raise SystemExit(1) from None
