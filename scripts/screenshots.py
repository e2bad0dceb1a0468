"""Take the screenshots of the server's page for the documentation.

    python -m nmt.serve 'run=[checkpoints/A,checkpoints/B]'
    python scripts/screenshots.py folder=docs [address=http://127.0.0.1:8765/] [text="A sentence."] [with=B]

The script needs Chromium and the extra `browser`. It writes `page-sentence.png`, `page-alignment.png`, `page-why.png`
and `page-whatif.png`; with B also `page-beside.png`, and if A has been evaluated `page-corpus.png`.
"""

import io
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from PIL import Image, ImageOps
from verbs import key_values, script

from nmt.system.errors import UserError
from nmt.system.files import write_bytes

WIDTH, MARGIN, TIMEOUT = 1000, 10, 120_000


def save(picture: bytes, path: Path) -> None:
    """Write a picture without white margins, and with 64 colours: a fifth of the size without a visible difference."""
    data = io.BytesIO()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    _, _, right, bottom = ImageOps.invert(image.convert("L")).getbbox() or (0, 0, *image.size)
    image = image.crop((0, 0, min(image.width, right + MARGIN), min(image.height, bottom + MARGIN)))
    image.quantize(64, dither=Image.Dither.NONE).save(data, "PNG", optimize=True)
    write_bytes(path, data.getvalue())
    print(f"{path}: {len(data.getvalue()) / 1000:.0f} kB")


def sweep(page: Any) -> None:
    """Sweep the step of the longest piece: its output with attention to each source piece in turn."""
    box = page.locator("#whatif")
    steps = box.get_by_label("Pin step")
    steps.select_option(label=max(steps.locator("option").all_inner_texts(), key=len))
    box.get_by_role("button", name="Sweep the word").click()
    box.locator("details").first.wait_for()


def light(page: Any) -> None:
    """Choose the longest word of the translation."""
    words = page.locator("#sentence .sentence").last.locator("button")
    texts = words.all_inner_texts()
    words.nth(texts.index(max(texts, key=len))).click()


def compare(page: Any) -> None:
    """Choose the cell where the two models differ most."""
    cells = page.locator("#beside figure").nth(2).locator("tr:not(:has(th.end)) td.cell")
    numbers = [abs(float(text.replace("−", "-") or 0)) for text in cells.all_inner_texts()]
    cells.nth(numbers.index(max(numbers))).click()


def nothing(page: Any) -> None:
    """Leave a section unchanged."""


def take(page: Any, folder: Path) -> None:
    """Prepare each section as a reader would use it, and save its picture."""
    sections: dict[str, Callable[[Any], None]] = {
        "sentence": light, "alignment": nothing, "why": nothing, "whatif": sweep, "beside": compare
    }  # fmt: skip
    for name, prepare in sections.items():
        section = page.locator(f"#{name}:not([hidden])")
        if section.count():
            prepare(page)
            page.mouse.move(0, 0)
            save(section.screenshot(), folder / f"page-{name}.png")
    if page.locator("#corpus table").count():
        corpus = page.locator("#corpus")
        corpus.get_by_label("Sort by").select_option("entropy")
        corpus.get_by_label("Order").select_option("down")
        save(page.locator("#corpus").screenshot(), folder / "page-corpus.png")


def main(words: Sequence[str]) -> int:
    """Open the page and take the pictures."""
    settings = {"address": "http://127.0.0.1:8765/", "text": "", "with": "", **key_values(words)}
    if "folder" not in settings:
        raise UserError("folder=FOLDER is missing: where to write the pictures.")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise UserError("There is no Chromium on the PATH. Install it: apt install chromium")
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise UserError("The package playwright is missing. Install it: pip install -e '.[browser]'") from error
    fragment = {name: settings[name] for name in ("text", "with") if settings[name]}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.set_default_timeout(TIMEOUT)
        try:
            page.goto(f"{settings['address']}#{urlencode(fragment)}")
            page.wait_for_selector(f"#{'beside' if settings['with'] else 'explain'}:not([hidden])")
        except Error as error:
            reason = error.message.splitlines()[0]
            raise UserError(f"{settings['address']} does not answer as nmt.serve does ({reason}).") from error
        take(page, Path(settings["folder"]))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(script("screenshots.py", main))
