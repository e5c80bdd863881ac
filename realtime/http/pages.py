"""The web page and its modules, as files."""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

PAGE_HEADERS = {
    "Cache-Control": "no-cache",  # ask each time whether it changed: the files are small
    "Content-Security-Policy": (
        # No frame: a page around it could lay its own words over the microphone's button.
        "default-src 'self'; connect-src 'self' ws: wss:; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Pages(StaticFiles):
    """Files of one folder; `/` is index.html."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD") and not self.lookup_path(path)[1]:
            raise HTTPException(404)  # no page was meant
        response = await super().get_response(path, scope)
        response.headers.update(PAGE_HEADERS)
        return response
