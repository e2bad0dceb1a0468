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
_STYLE = (
    "<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:1rem auto;"
    "padding:0 1rem}pre{overflow:auto}code{overflow-wrap:anywhere}</style>"
)
_HEAD = (
    f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">{_STYLE}'
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
    routes = []
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]
            body = f'<p>Body: <a href="#{html.escape(name)}">{html.escape(name)}</a></p>' if name else ""
            title = f"<code>{method.upper()} {html.escape(path)}</code>"
            routes.append(f"<h2>{title}</h2><p>{html.escape(route.get('summary', ''))}</p>{body}")
    models = []
    for name, model in schema.get("components", {}).get("schemas", {}).items():
        text = html.escape(json.dumps(model, indent=2, ensure_ascii=False))
        models.append(
            f'<details id="{html.escape(name)}"><summary>{html.escape(name)}</summary><pre>{text}</pre></details>'
        )
    return (
        f"{_HEAD}<title>nmt: REST interface</title><h1>REST interface</h1>"
        f'<p><a href="{above}openapi.json">openapi.json</a> describes it for programs.</p>'
        f"{''.join(routes)}<h2>Bodies</h2>{''.join(models)}</html>"
    )
