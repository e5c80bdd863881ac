"""The web pages and their modules, as files of one folder and of the folders in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from urllib.parse import SplitResult, urlsplit

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

PAGE_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-cache",  # ask each time whether it changed: the files are small
    "Content-Security-Policy": (
        # blob: a sound that was just recorded is listened to before it is sent anywhere.
        "default-src 'self'; connect-src 'self' ws: wss:; media-src 'self' blob:; "
        # No frame: a page around it could lay its own words over the microphone's button.
        "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Permissions-Policy": "microphone=(self)",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

# A browser takes no module and no style of another type, and what a system believes varies.
MEDIA_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


class Pages(StaticFiles):
    """`/` is index.html, and so is a folder that has one; of any other folder nothing is told.

    Every answer carries an ETag; a browser that shows it again gets 304.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD") and not self._has(path):
            raise HTTPException(404)  # no page was meant
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            # A file that the server may not read is none; a key would not help.
            if error.status_code == 401:
                raise HTTPException(404) from error
            raise
        if "location" in response.headers:
            # Of a folder without its slash: on this server, whatever host the request named.
            there = urlsplit(response.headers["location"])
            local = SplitResult("", "", "/" + there.path.lstrip("/"), there.query, "")
            response.headers["location"] = local.geturl()
        response.headers.update(PAGE_HEADERS)
        media_type = MEDIA_TYPES.get(PurePath(getattr(response, "path", "")).suffix)
        if media_type is not None:
            response.headers["Content-Type"] = media_type
        return response

    def _has(self, path: str) -> bool:
        try:
            return self.lookup_path(path)[1] is not None
        except (OSError, ValueError):
            return False
