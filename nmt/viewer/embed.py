"""Self-contained HTML files with the viewer and its data, for reports and notebooks.

The modules of the viewer are joined into one script. The file's Content-Security-Policy allows only this script and the
style sheet, by their hashes, so text from a corpus cannot run as code.
"""

import base64
import functools
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from nmt.system.terminal import printable

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";\n', re.MULTILINE)
#: Characters that are escaped in JSON.
_SPELLED = re.compile("[<>&\u2028\u2029\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.MULTILINE)


def static(name: str) -> str:
    """The text of a file of the viewer."""
    return files("nmt.viewer").joinpath("static", name).read_text(encoding="utf-8")


@functools.cache
def bundle(entry: str = "report.js") -> str:
    """Join a module and all its imports into one script, each module in a separate scope.

    Raises:
        ValueError: a module has an unsupported form of import or export, or the imports are circular.
    """
    done: dict[str, str] = {}
    _add(entry, done, ())
    return '"use strict";\nconst modules = {};\n' + "\n".join(done.values())


def _add(name: str, done: dict[str, str], waiting: tuple[str, ...]) -> None:
    if name in waiting:
        raise ValueError(f"{name} imports itself by way of {', '.join(waiting)}.")
    if name in done:
        return
    source = static(name)
    for _, other in _IMPORT.findall(source):
        _add(other, done, (*waiting, name))
    names = ", ".join(symbol for _, symbol in _EXPORT.findall(source))
    body = _IMPORT.sub(lambda match: f'const {{{match[1]}}} = modules["{match[2]}"];\n', source)
    body = _EXPORT.sub(r"\1 \2", body)
    if re.search(r"^(import|export)\b", body, re.MULTILINE):
        raise ValueError(f"{name} has an import or export that cannot be joined.")
    done[name] = f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {names} }};\n}})();\n'


def embedded_json(value: Any) -> str:
    """JSON for a script element: its text cannot end the element, begin a comment or control a terminal."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _SPELLED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def policy_hash(text: str) -> str:
    """The hash source by which a Content-Security-Policy allows a script or a style sheet."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def viewer(identifier: str, data: Mapping[str, Any]) -> str:
    """The HTML element of a viewer, with its data; `page` adds the script.

    Args:
        identifier: id in the page: lower-case letters, digits and hyphens.
        data: `sentences`, each with a `line`, `translations` (a `name` and a `translation`) and a `reference`; and
            `corpus`, rows of measures, or None.

    Raises:
        ValueError: the identifier is invalid, or the data contain a number that is not finite.
    """
    if not re.fullmatch(r"[a-z][a-z0-9-]*", identifier):
        raise ValueError(f"{identifier!r} cannot be the id of a viewer.")
    return (
        f'<script type="application/json" id="{identifier}-data">{embedded_json(data)}</script>\n'
        f'<div class="nmt-viewer" id="{identifier}" data-source="{identifier}-data">'
        f"<noscript><p>The viewer needs JavaScript.</p></noscript></div>"
    )


def page(title: str, body: str, *, script: bool = True) -> str:
    """A complete HTML file that needs no network.

    Args:
        title: title of the window, any text.
        body: HTML with all texts escaped.
        script: whether to include the viewer's script; without it, the page runs no script.
    """
    code, style = f"\n{bundle()}\n" if script else "", f"\n{static('style.css')}\n"
    policy = (
        f"default-src 'none'; style-src {policy_hash(style)}; img-src data: blob:; base-uri 'none'; form-action 'none'"
        + (f"; script-src {policy_hash(code)}" if script else "")
    )
    runs = f'<script type="module">{code}</script>\n' if script else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(printable(title))}</title>\n"
        f'<link rel="icon" href="data:,">\n<style>{style}</style>\n</head>\n<body class="report">\n'
        f"{body}\n{runs}</body>\n</html>\n"
    )


def frame(title: str, body: str, height: int = 720) -> str:
    """An iframe with a page, for example for a notebook; its sandbox has no access to the surrounding page."""
    inside = html.escape(page(title, body), quote=True)
    name = html.escape(printable(title))
    return (
        f'<iframe title="{name}" sandbox="allow-scripts allow-downloads" width="100%" height="{height}" '
        f'style="border:0" srcdoc="{inside}"></iframe>'
    )
