"""Names, values and texts that command a terminal: none of them reaches it, or a report, as it is."""

from pathlib import Path

import pytest

from tests.small import QUICK, Capture, call, copied, words, write_lines

#: Erases the screen; renames the window (ESC, and its one-byte form among the C1 controls); turns the text around.
ATTACK = "\x1b[2J\x1b]0;owned\x07\x9d0;owned\x9c\u202egpj"
FORBIDDEN = set("\x1b\x07\x9d\x9c\u202e")


def harmless(text: str) -> bool:
    """Whether a text shows the attack, and obeys none of it."""
    return not FORBIDDEN & set(text) and "\\x1b[2J" in text


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("translate", [f"run=nowhere{ATTACK}"]),
        ("translate", ["run=RUN", f"input=nowhere{ATTACK}"]),
        ("translate", ["run=RUN", f"beam{ATTACK}=3"]),
        ("translate", ["run=RUN", f"beam_size={ATTACK}"]),
        ("train", [f"encoder={ATTACK}"]),
        ("check", [f"run=nowhere{ATTACK}"]),
    ],
    ids=range(6),
)
def test_an_argument_commands_no_terminal(
    verb: str, arguments: list[str], here: Path, trained: Path, capfd: Capture
) -> None:
    status = call(verb, *(word.replace("RUN", str(trained)) for word in arguments))
    said = capfd.readouterr()
    assert status == 1
    assert harmless(said.err)
    assert said.out == ""


def test_a_value_of_a_configuration_commands_no_terminal(here: Path, run: Path, capfd: Capture) -> None:
    text = (run / "config.yaml").read_text()
    assert "\n  size: 16\n" in text
    value = '"\\e[2J\\e]0;owned\\a\\x9d0;owned\\u202egpj"'
    (run / "config.yaml").write_text(text.replace("\n  size: 16\n", f"\n  size: {value}\n"))
    assert call("translate", f"run={run}", f"input={write_lines(here / 'in.txt', ['eins'])}") == 1
    assert not FORBIDDEN & set(capfd.readouterr().err)


def test_a_name_of_a_run_commands_no_terminal(here: Path, run: Path, capfd: Capture) -> None:
    run = run.rename(here / f"run{ATTACK}")
    assert call("check", f"run={run}") == 0
    assert harmless(capfd.readouterr().out)


@pytest.mark.parametrize("shown", [["--cfg", "job"], ["-m", "seed=1,2", "dry_run=true"]], ids=["cfg", "dry_run"])
def test_what_is_printed_to_be_pasted_commands_no_terminal(
    shown: list[str], here: Path, text: Path, capfd: Capture
) -> None:
    name = ATTACK.replace("/", "")
    assert call("train", *words(text, here, f"cache={here / name}", "name=s", "trainer.steps=1"), *shown) == 0
    said = capfd.readouterr()
    assert "0;owned" in said.out
    assert not FORBIDDEN & set(said.out + said.err)


@pytest.mark.long
def test_a_text_reaches_neither_the_terminal_nor_a_report(here: Path, trained: Path, capfd: Capture) -> None:
    run = copied(trained, here).rename(here / f"run{ATTACK}")
    source = write_lines(here / "in.txt", [f"eins {ATTACK}", "zwei"])
    reference = write_lines(here / "out.txt", [f"one {ATTACK}", "two"])
    files = [f"source={source}", f"reference={reference}"]
    assert call("evaluate", f"run={run}", *files, "batch_sentences=20", "device=cpu", "threads=1") == 0
    assert call("compare", f"runs=[{run}]", *QUICK) in (0, 1)
    said = capfd.readouterr()
    assert harmless(said.out + said.err)
    reports = [*here.rglob("report.html"), *here.rglob("report.md")]
    assert reports
    for report in reports:
        text = report.read_text()
        assert "owned" in text
        assert not FORBIDDEN & set(text), report
