"""Errors with a message for users. All code may raise them; the commands print the message and exit with status 1."""

import contextlib
import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path


class UserError(Exception):
    """A mistake that the user can fix: the message says what is wrong, where, and the fix."""


class UnknownSettingError(UserError):
    """A setting or a choice that this version of the program does not have."""


class SettingError(UserError):
    """An invalid value of a constructor's parameter; the message has the name of the parameter.

    `nmt.system.limits.checked` adds the key of the part: "size=-4: must be ..." becomes "encoder.size=-4: must be ...".
    """

    def __init__(self, name: str, value: object, rule: str, key: str | None = None) -> None:
        """`rule` completes the message, such as "must divide size=64. Give {key}.size=..."; {key} is the part's key."""
        message = f"{{key}}.{name}={value}: {rule}"
        for separator in "./":
            message = message.replace(f"{{key}}{separator}", f"{key}{separator}" if key else "")
        super().__init__(message)
        self.name, self.value, self.rule, self.key = name, value, rule, key

    def at(self, key: str) -> "SettingError":
        """The error with the key of the part, unless an inner part has already added its key."""
        return SettingError(self.name, self.value, self.rule, key) if self.key is None else self


def check_parallel(lines: Mapping[str, int]) -> None:
    """Raise UserError unless all numbers of lines are equal; the keys are the names of the files or texts."""
    if len(set(lines.values())) > 1:
        each = " and ".join(f"{name} has {count:,} line{'s' * (count != 1)}" for name, count in lines.items())
        raise UserError(f"{each}: line N of each must belong to the same sentence.")


#: Exceptions from reading a damaged file, or from using its content.
_DAMAGE: tuple[type[Exception], ...] = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
_DAMAGE += (RuntimeError, EOFError)


def damaged(path: Path, reason: str = "") -> UserError:
    """The error for a damaged file or folder of a run."""
    return UserError(
        f"{path} is damaged{f': {reason}' if reason else ' and cannot be read'}. Restore the run from an intact copy."
    )


def is_memory_full(error: BaseException) -> bool:
    """Whether an error means that the memory of the GPU or of the process is full."""
    torch = sys.modules.get("torch")  # no import: without torch in memory, the error cannot come from torch
    on_gpu = torch is not None and isinstance(error, torch.OutOfMemoryError)
    by_torch = isinstance(error, RuntimeError) and "DefaultCPUAllocator: " in str(error)
    return on_gpu or by_torch or isinstance(error, MemoryError)


def missing_package(error: ModuleNotFoundError) -> str:
    """The message for a package that is not installed; "" if a module of this program is missing."""
    name = (error.name or "").partition(".")[0]
    if not name or name == "nmt":
        return ""
    return (
        f"the Python package {name} is not installed for {sys.executable}. Install the program and what it needs: "
        f"{install_command()}"
    )


def install_command(extra: str = "") -> str:
    """The command that installs this program with an extra, from its source folder if the program runs from there."""
    from nmt.system.platform import shell_quoted

    folder = Path(__file__).resolve().parents[2]
    source = str(folder) if (folder / "pyproject.toml").is_file() else "attention-nmt"
    named = shell_quoted(f"{source}[{extra}]" if extra else source)
    return f"{shell_quoted(sys.executable)} -m pip install {'-e ' if source != 'attention-nmt' else ''}{named}"


@contextlib.contextmanager
def reading(path: Path, consequence: str = "", also: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Report errors in this context as damage of `path`, by a UserError.

    Args:
        path: the file or folder.
        consequence: the consequence of the damage, for the message.
        also: further exceptions that mean damage.
    """
    try:
        yield
    except _DAMAGE + also as error:
        if is_memory_full(error):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise damaged(path, f"{consequence} ({reason})" if consequence else "") from error
    except OSError as error:
        raise UserError(f"{error.filename or path} cannot be read: {error.strerror or error}.") from error


def nearest(name: str, options: Iterable[str], limit: int = 3) -> str:
    """Return " Did you mean 'a' or 'b'?" with the options most similar to `name`, or "" if no option is similar."""
    pool = sorted({str(option) for option in options})
    matches = difflib.get_close_matches(name, pool, n=limit, cutoff=0.55)
    matches += [option for option in pool if name and option.startswith(name) and option not in matches][:limit]
    if not matches:
        return ""
    return " Did you mean " + " or ".join(f"'{option}'" for option in matches[:limit]) + "?"
