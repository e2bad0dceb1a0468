"""The files for browsers: the page with its files, and the description of the interface."""

import html
import json
from pathlib import Path

from fastapi import FastAPI, Request
from starlette.responses import FileResponse, HTMLResponse, Response

import nmt
from nmt.serve.guard import POLICY
from nmt.serve.problems import ProblemError
from nmt.serve.schemas import LibreBody
from nmt.viewer import embed

STATIC = Path(nmt.__file__).parent / "viewer" / "static"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png"}
_DOCS = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<style>:root{{color-scheme:light dark}}body{{font:16px/1.5 system-ui,sans-serif;margin:1rem auto;padding:0 1rem}}
pre{{white-space:pre-wrap;overflow-wrap:anywhere}}</style><title>nmt: REST interface</title><h1>REST interface</h1>
<p><a href="{above}openapi.json">openapi.json</a> describes it for programs.</p><ul>{routes}</ul>
<h2>Bodies</h2><pre>{bodies}</pre></html>
"""


def add_pages(app: FastAPI, page_name: str) -> None:
    """Add the routes; `page_name` is "full" for the page with all sections, or "plain" for the page for readers."""
    text = (STATIC / ("plain.html" if page_name == "plain" else "page.html")).read_text(encoding="utf-8")
    first = text.partition("<script>")[2].partition("</script>")[0]  # the inline script, which needs a hash in POLICY
    policy = POLICY.replace("script-src 'self'", f"script-src 'self' {embed.policy_hash(first)}")
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
        schema = app.openapi()
        routes = "".join(
            f"<li><code>{method.upper()} {html.escape(path)}</code> {html.escape(route.get('summary', ''))}</li>"
            for path, methods in schema["paths"].items()
            for method, route in methods.items()
        )
        schemas = {**schema["components"]["schemas"], "LibreBody": LibreBody.model_json_schema()}
        bodies = html.escape(json.dumps(schemas, indent=2, ensure_ascii=False))
        return HTMLResponse(_DOCS.format(above=above, routes=routes, bodies=bodies))
