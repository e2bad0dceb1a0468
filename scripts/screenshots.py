"""Pictures of the server's page for the documents.

    python -m nmt.serve 'run=[checkpoints/A,checkpoints/B]'
    python scripts/screenshots.py folder=docs [address=http://127.0.0.1:8765/] [text="A sentence."] [with=B]

Needs Chromium and the extra `browser`. It writes `page-alignment.png`, `page-why.png`, `page-whatif.png` and, if A has
been evaluated, `page-corpus.png`.
"""

import io
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from PIL import Image
from verbs import key_values, script

from nmt.errors import UserError
from nmt.files import write_bytes

WIDTH, TIMEOUT = 1000, 120_000


def save(picture: bytes, path: Path) -> None:
    """Write a picture with few colours: a fifth of the size, and no difference for the eye."""
    data = io.BytesIO()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(64, dither=Image.Dither.NONE).save(data, "PNG", optimize=True)
    write_bytes(path, data.getvalue())
    print(f"{path}: {len(data.getvalue()) / 1000:.0f} kB")


def sweep(page: Any) -> None:
    """Ask what the third step would say if it looked at each source piece in turn."""
    box = page.locator("#whatif")
    box.get_by_label("Pin step").select_option("2")
    box.get_by_role("button", name="Sweep the step").click()
    box.locator("details").first.wait_for()


def nothing(page: Any) -> None:
    """Show a section as it is."""


def take(page: Any, folder: Path) -> None:
    """Show each section as a reader would, and save its picture."""
    sections: dict[str, Callable[[Any], None]] = {"alignment": nothing, "why": nothing, "whatif": sweep}
    for name, prepare in sections.items():
        prepare(page)
        page.mouse.move(0, 0)
        save(page.locator(f"#{name}").screenshot(), folder / f"page-{name}.png")
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
        raise UserError("The package playwright is missing. Install it: pip install 'nmt[browser]'") from error
    chosen = {name: settings[name] for name in ("text", "with") if settings[name]}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.set_default_timeout(TIMEOUT)
        try:
            page.goto(f"{settings['address']}#{urlencode(chosen)}")
            page.wait_for_selector(f"#{'beside' if settings['with'] else 'explain'}:not([hidden])")
        except Error as error:
            reason = error.message.splitlines()[0]
            raise UserError(f"{settings['address']} does not answer as nmt.serve does ({reason}).") from error
        take(page, Path(settings["folder"]))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(script("screenshots.py", main))
