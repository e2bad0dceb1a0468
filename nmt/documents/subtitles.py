"""Subtitles (.srt, .vtt): cues with times. A sentence over several cues is translated as a whole and divided again."""

import html
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from nmt.documents.document_slots import Slots, is_language
from nmt.documents.markup import inline, subtitle_tokens
from nmt.text.tags import Segment, Tag

#: Usual limits of subtitles: characters per line, lines per cue, characters per second.
LINE, LINES, SPEED = 42, 2, 21
_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
# The number and the times of the next cue are not text, even without an empty line before them.
_NEXT = r"(?!(?:[ \t]*\d+[ \t]*\r?\n)?[\d:]*\d[.,]\d{1,3}[ \t]+-->)"
_LINE = rf"{_NEXT}(?=[^\r\n]*[^\s])[^\r\n]++(?:\r?\n|\Z)"
_CUE = re.compile(rf"^{_TIME}[ \t]+-->[ \t]+{_TIME}[^\r\n]*\r?\n((?:{_LINE})+)", re.M)
_FRAME = re.compile(rf"^(?:[ \t]*\d+[ \t]*|{_TIME}[ \t]+-->.*)$", re.M)
_DASH = re.compile(r"^(?:[ \t]|<[^<>]*+>|\{\\[^{}]*+\})*+[-–—‐][ \t]*", re.M)
_FINAL = re.compile(r"[.!?…。！？؟।♪:][\])}\"'»“”’]*$")
_BREAK = "\x1e"  # stands for the end of a cue in a segment
_GAP, _MOST = 2.0, 6  # limits for one sentence: seconds between cues, number of cues


class _Part(NamedTuple):
    """The text of a cue or of one speaker in it: span in the file, segment, times of the cue, whether it is all."""

    start: int
    end: int
    segment: Segment
    begins: float
    ends: float
    whole: bool


def read_srt(text: str, slots: Slots) -> str:
    """The text of .srt with marks.

    Raises:
        ValueError: the text has no cue.
    """
    if text.strip() and not re.search(rf"{_TIME}[ \t]+-->", text):
        raise ValueError("it has no cue with times (00:00:01,000 --> 00:00:02,000)")
    outside = _FRAME.sub("", _CUE.sub("", text)).splitlines()
    slots.notes["lines outside of cues, which are not translated"] += sum(map(is_language, outside))
    return _read(text, slots, str, str)


def read_vtt(text: str, slots: Slots) -> str:
    """The text of .vtt with marks.

    Raises:
        ValueError: the text does not begin with WEBVTT.
    """
    if not re.match(r"WEBVTT(?:[ \t\r\n]|\Z)", text):
        raise ValueError("it does not begin with WEBVTT")
    return _read(text, slots, html.unescape, lambda value: html.escape(value, quote=False))


def _read(text: str, slots: Slots, unescape: Callable[[str], str], escape: Callable[[str], str]) -> str:
    parts = [part for cue in _CUE.finditer(text) for part in _parts(cue, unescape)]
    ending = "\r\n" if "\r\n" in text else "\n"
    pieces, at = [], 0
    for group in _groups(parts):
        for number, part in enumerate(group):
            raw, write = text[part.start : part.end], _writer(slots, group, number, escape, ending)
            mark = slots.also(raw, write) if number else slots.add(_joined(group), raw, write)
            pieces += [text[at : part.start], mark]
            at = part.end
    return "".join([*pieces, text[at:]])


def _parts(cue: re.Match[str], unescape: Callable[[str], str]) -> list[_Part]:
    """The parts of a cue: a single part, or one for each speaker if several lines begin with a dash."""
    content = cue[9]
    dashes = list(_DASH.finditer(content))
    starts = [dash.end() for dash in dashes] if len(dashes) > 1 else [0]
    if len(dashes) > 1 and dashes[0].start():
        starts = [0, *starts]
    ends = [*(content.rfind("\n", 0, start) + 1 for start in starts[1:]), len(content)]
    hours, minutes, seconds, thousandths, *rest = (float(part or 0) for part in cue.groups()[:8])
    begins = hours * 3600 + minutes * 60 + seconds + thousandths / 1000
    stops = rest[0] * 3600 + rest[1] * 60 + rest[2] + rest[3] / 1000
    parts = []
    for start, end in zip(starts, ends, strict=True):
        built = inline(subtitle_tokens(content[start:end]), unescape=unescape)
        if built is not None and is_language(built.segment.text):
            first, last = start + len(built.before), start + len(built.before) + len(built.raw)
            place = cue.start(9) + first, cue.start(9) + last
            parts.append(_Part(*place, built.segment, begins, stops, len(starts) == 1))
    return parts


def _groups(parts: Sequence[_Part]) -> list[list[_Part]]:
    """Group consecutive parts, so that each group has whole sentences."""
    groups = list[list[_Part]]()
    for part in parts:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and last.whole
            and part.whole
            and 0 <= part.begins - last.ends <= _GAP
            and len(groups[-1]) < _MOST
            and not _FINAL.search(last.segment.text)
        ):
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups


def _joined(group: Sequence[_Part]) -> Segment:
    """The segment of a group: its texts, with a lone tag at each end of a cue."""
    text, tags = "", list[Tag]()
    for part in group:
        if text:
            tags.append(Tag(len(text), len(text), _BREAK))
            text += " "
        tags += [tag._replace(start=tag.start + len(text), end=tag.end + len(text)) for tag in part.segment.tags]
        text += part.segment.text
    return Segment(text, tuple(tags))


def _writer(
    slots: Slots, group: Sequence[_Part], number: int, escape: Callable[[str], str], ending: str
) -> Callable[[Segment], str]:
    part = group[number]

    def write(segment: Segment) -> str:
        text = _balanced(_cut(segment, group, escape))[number].strip()
        lines = _wrapped(text)
        crowded = len(lines) > LINES or _length(text) > SPEED * max(part.ends - part.begins, 0.001)
        slots.notes[f"cues with more than {LINES} lines, or more than {SPEED} characters a second"] += crowded
        return ending.join(lines)

    return write


def _cut(segment: Segment, group: Sequence[_Part], escape: Callable[[str], str]) -> list[str]:
    """The text of each cue, cut at its tags, or in proportion to the source lengths if a cue would be empty."""
    texts = segment.render(escape).split(_BREAK)
    if all(text.strip() for text in texts):
        return texts
    words = re.findall(r"(?:<[^<>]*>|\S)+", " ".join(texts))
    lengths = [len(part.segment.text) for part in group]
    ends = [round(len(words) * sum(lengths[:number]) / sum(lengths)) for number in range(len(group) + 1)]
    return [" ".join(words[start:end]) for start, end in pairwise(ends)]


def _wrapped(text: str) -> list[str]:
    """Wrap a text to as few lines as `LINE` allows, of about equal length without tags."""
    words = re.findall(r"(?:<[^<>]*>|\S)+", text)
    length = _length(text)
    most = max(1, -(-length // LINE))
    for width in range(-(-length // most), LINE + 1):
        lines = [""]
        for word in words:
            if lines[-1] and _length(f"{lines[-1]} {word}") > width:
                lines.append(word)
            else:
                lines[-1] = f"{lines[-1]} {word}".strip()
        if len(lines) <= most:
            break
    return lines


def _length(text: str) -> int:
    return len(re.sub("<[^<>]*>", "", text))


def _balanced(texts: Sequence[str]) -> list[str]:
    """Close all tags that a text opens at its end; a tag that spans several texts is opened again in the next."""
    results, opened = [], list[str]()
    for text in texts:
        prefix = "".join(opened)
        for tag in re.finditer(r"<(/?)([a-zA-Z]+)[^<>]*>", text):
            if not tag[1]:
                opened.append(tag[0])
            elif opened:
                opened.pop()
        closing = "".join(f"</{re.match('<([a-zA-Z]+)', tag)[1]}>" for tag in reversed(opened))  # type: ignore[index]
        results.append(prefix + text + closing)
    return results
