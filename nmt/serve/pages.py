"""What browsers load: the page and its files, and the description of the interface, all from here."""

import base64
import hashlib
import html
import json
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import FileResponse, HTMLResponse, Response

import nmt
from nmt.serve.guard import POLICY
from nmt.serve.problems import ProblemError

STATIC = Path(nmt.__file__).parent / "viewer" / "static"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png"}
_HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:1rem auto;"
    "padding:0 1rem}pre{overflow:auto}code{overflow-wrap:anywhere}</style>"
)


def add_pages(app: FastAPI) -> None:
    """Add the routes."""
    text = (STATIC / "page.html").read_text(encoding="utf-8")
    policy = POLICY.replace("script-src 'self'", f"script-src 'self' {hash_of_script(text)}")
    files = {path.name: path for path in STATIC.iterdir() if path.suffix in TYPES}

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    @app.get("/viewer/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        if name not in files:
            raise ProblemError(404, "There is no such file.", cure="Open the page at /.")
        return FileResponse(files[name], media_type=TYPES[files[name].suffix])

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return Response(status_code=204)

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        above = "../" if request.scope["raw_path"].endswith(b"/") else ""
        return HTMLResponse(interface(app.openapi(), above))


def hash_of_script(page: str) -> str:
    """What a policy calls the script in a page: it runs before any file is loaded."""
    script = page.partition("<script>")[2].partition("</script>")[0]
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def interface(schema: dict[str, Any], above: str = "") -> str:
    """The description of a REST interface as a page without scripts; `above` leads from it to the page."""
    routes = "".join(
        f"<h2><code>{method.upper()} {html.escape(path)}</code></h2><p>{html.escape(route.get('summary', ''))}</p>"
        for path, methods in schema["paths"].items()
        for method, route in methods.items()
    )
    bodies = "".join(
        f"<h3>{name}</h3><pre>{html.escape(json.dumps(body, indent=2, ensure_ascii=False))}</pre>"
        for name, body in schema["components"]["schemas"].items()
    )
    return (
        f"{_HEAD}<title>nmt: REST interface</title><h1>REST interface</h1>"
        f'<p><a href="{above}openapi.json">openapi.json</a> describes it for programs.</p>'
        f"{routes}<h2>Bodies</h2>{bodies}</html>"
    )
