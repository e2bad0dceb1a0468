"""Hooks of `mkdocs build` for docs/: equations become MathML, and the notebook with its outputs becomes a page.

All browsers support MathML, so a page with equations needs no script, no font and no network. Equations are written in
a syntax that GitHub also supports: LaTeX in a fence of the kind `math`, or between $` and `$ in a line.
"""

import html
import json
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

NOTEBOOK, PAGE = "attention.ipynb", "attention-notebook.md"
_EQUATION = re.compile(r"^```math\n(.*?)^```$|\$`([^`]+)`\$", re.MULTILINE | re.DOTALL)
#: Empty style sheets for the theme's script, which switches two style sheets of highlight.js that this site omits.
_SWITCHED = '<style id="hljs-light"></style><style id="hljs-dark"></style>'


def on_files(files: Any, config: Any) -> Any:
    """Add the page of the notebook to the files."""
    from mkdocs.structure.files import File  # type: ignore[import-untyped, unused-ignore]

    text = notebook_page(Path(config.docs_dir, NOTEBOOK))
    files.append(File.generated(config, PAGE, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Convert the equations of a page to MathML, and links to the notebook to links to its page."""
    if page.file.src_uri != PAGE:
        markdown = markdown.replace(f"({NOTEBOOK})", f"({PAGE})")
    return _EQUATION.sub(lambda match: equation(match[1] or match[2], block=match[1] is not None), markdown)


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Replace the marks on the notebook's page by the outputs."""
    if page.file.src_uri != PAGE:
        return content
    outputs = [each for cell in cells(Path(config.docs_dir, NOTEBOOK)) for each in cell.get("outputs", ())]
    for at, output in enumerate(outputs):
        content = content.replace(f"<p>[output {at}]</p>", html_of(output))
    return content


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Add the empty style sheets without which the theme's script would fail."""
    return output.replace("</head>", f"{_SWITCHED}</head>", 1)


def equation(latex: str, *, block: bool) -> str:
    """Convert an equation from LaTeX to MathML; a block equation can scroll on narrow screens."""
    mathml = convert(latex.strip(), display="block" if block else "inline")
    return f'<div class="equation" tabindex="0">{mathml}</div>' if block else mathml


def cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells of a notebook."""
    entries: list[dict[str, Any]] = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return entries


def notebook_page(notebook: Path) -> str:
    """Convert a notebook to Markdown: its text and code, with a mark in the place of each output."""
    parts: list[str] = []
    outputs = 0
    for cell in cells(notebook):
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for _ in cell.get("outputs", ()):
            parts.append(f"[output {outputs}]")
            outputs += 1
    parts.insert(1, f"Download it: [{notebook.name}]({notebook.name}). To run it: `pip install -e '.[notebook]'`, "
                    f"then `jupyter lab docs/{notebook.name}`.")  # fmt: skip
    return "\n\n".join(parts) + "\n"


def html_of(output: dict[str, Any]) -> str:
    """Convert an output of a cell to HTML: its HTML, its picture or its text."""
    data = {kind: "".join(value) for kind, value in output.get("data", {}).items() if not isinstance(value, dict)}
    if "text/html" in data:
        return f'<div class="output">{data["text/html"]}</div>'
    if "image/png" in data:
        source = f"data:image/png;base64,{data['image/png'].strip()}"
        return f'<p class="output"><img alt="heatmap of the weights" src="{source}"></p>'
    text = "".join(output.get("text", "")) or data.get("text/plain", "")
    return f'<pre class="output">{html.escape(text)}</pre>'
