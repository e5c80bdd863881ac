"""What a walk chooses from: turn detections, and events that can only be refused."""

from __future__ import annotations

from realtime.session import events as ev
from realtime.session.events import Event
from realtime.session.items import Item, ItemKind, ItemReference, Role
from realtime.session.settings import (
    Eagerness,
    ResponseOptions,
    SemanticVad,
    ServerVad,
    SessionType,
    SettingsPatch,
    TurnDetection,
)

DETECTIONS: tuple[TurnDetection | None, ...] = (
    ServerVad(),
    ServerVad(silence_duration_ms=200, idle_timeout_ms=3000),
    ServerVad(interrupt_response=False),
    ServerVad(create_response=False),
    SemanticVad(),
    SemanticVad(eagerness=Eagerness.LOW),
    SemanticVad(eagerness=Eagerness.HIGH, interrupt_response=False),
    None,
)

NONSENSE_ID = "e_nonsense"
_MESSAGE = Item("", ItemKind.MESSAGE, role=Role.USER)
_OUTPUT = Item("", ItemKind.FUNCTION_CALL_OUTPUT, call_id="call_nowhere", output="1")
_TRANSCRIBING = SettingsPatch((("type", SessionType.TRANSCRIPTION), ("instructions", "Lost.")))
_NOWHERE = ResponseOptions(input=(ItemReference("nowhere"),))

# Whatever has happened before, each of these is one error and nothing else.
NONSENSE: tuple[Event, ...] = (
    ev.ClientRefused(NONSENSE_ID, "invalid_request_error", "invalid_json", "It is no JSON."),
    ev.ClientItemCreate(NONSENSE_ID, _MESSAGE, "nowhere"),
    ev.ClientItemCreate(NONSENSE_ID, _OUTPUT),
    ev.ClientItemRetrieve(NONSENSE_ID, "nowhere"),
    ev.ClientItemDelete(NONSENSE_ID, "nowhere"),
    ev.ClientItemTruncate(NONSENSE_ID, "nowhere", 0, 100),
    ev.ClientSessionUpdate(NONSENSE_ID, _TRANSCRIBING),
    ev.ClientResponseCreate(NONSENSE_ID, _NOWHERE),
    ev.ClientResponseCancel(NONSENSE_ID, "resp_nowhere"),
)
