"""Conversation items and their parts, as the wire shows them.

Keys that are absent and keys that are null differ to clients: `transcript` of an input_audio part
must be there even if null, most others must not be null.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any

from realtime.session.items import Item, ItemKind, Part, PartKind
from realtime.session.settings import Modality

_NO_AUDIO: Mapping[int, bytes] = {}


def item_view(item: Item, audio: Mapping[int, bytes] = _NO_AUDIO) -> dict[str, Any]:
    """audio: the wire bytes of content parts by index; only `retrieved` shows them."""
    view: dict[str, Any] = {
        "id": item.id,
        "object": "realtime.item",
        "type": item.kind.value,
        "status": item.status.value,
    }
    match item.kind:
        case ItemKind.MESSAGE:
            view["role"] = item.role
            view["content"] = [
                _content_view(part, audio.get(index)) for index, part in enumerate(item.parts)
            ]
        case ItemKind.FUNCTION_CALL:
            view["call_id"] = item.call_id or ""
            view["name"] = item.name or ""
            view["arguments"] = item.arguments or ""
        case ItemKind.FUNCTION_CALL_OUTPUT:
            view["call_id"] = item.call_id or ""
            view["output"] = item.output or ""
    return view


def part_view(modality: Modality, text: str) -> dict[str, Any]:
    """The `part` of content_part events, whose types are not those of content."""
    if modality is Modality.AUDIO:
        return {"type": "audio", "transcript": text}
    return {"type": "text", "text": text}


def base64_text(audio: bytes) -> str:
    return binascii.b2a_base64(audio, newline=False).decode("ascii")


def _content_view(part: Part, audio: bytes | None) -> dict[str, Any]:
    view: dict[str, Any] = {"type": part.kind.value}
    match part.kind:
        case PartKind.INPUT_TEXT | PartKind.OUTPUT_TEXT:
            view["text"] = part.text or ""
        case PartKind.INPUT_AUDIO:
            view["transcript"] = part.text
        case PartKind.OUTPUT_AUDIO:
            view["transcript"] = part.text or ""
        case PartKind.INPUT_IMAGE:
            view["image_url"] = part.image_url or ""
            if part.image_detail is not None:
                view["detail"] = part.image_detail
    if audio is not None:
        view["audio"] = base64_text(audio)
    return view
