"""What browsers load: the page and its files, and the description of the interface, all from here."""

import html
import json
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.responses import FileResponse, HTMLResponse, Response

import nmt
from nmt.serving.problems import ProblemError

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

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        if (STATIC / "page.html").is_file():
            return FileResponse(STATIC / "page.html", media_type="text/html")
        return HTMLResponse(f'{_HEAD}<title>nmt</title><h1>nmt</h1><p><a href="/docs">The REST interface</a></p>')

    @app.get("/viewer/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        path = STATIC / name
        if path.name != name or path.suffix not in TYPES or not path.is_file():
            raise ProblemError(404, "There is no such file.", cure="Open the page at /.")
        return FileResponse(path, media_type=TYPES[path.suffix])

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return Response(status_code=204)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(interface(app.openapi()))


def interface(schema: dict[str, Any]) -> str:
    """The description of a REST interface as a page without scripts."""
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
        f'<p><a href="/openapi.json">/openapi.json</a> describes it for programs.</p>'
        f"{''.join(routes)}<h2>Bodies</h2>{''.join(models)}</html>"
    )
