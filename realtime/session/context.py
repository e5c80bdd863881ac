"""What the regions of one machine share: settings, conversation, clocks, and the effects so far."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from realtime.session.bounds import Bounds
from realtime.session.conversation import Conversation
from realtime.session.deadlines import Deadlines, Due
from realtime.session.effects import Abort, Effect, Notify, NotifyDetail
from realtime.session.flow import Flow
from realtime.session.identifiers import Identifiers
from realtime.session.items import Item, PartKind
from realtime.session.notices import Detail, ErrorRaised, Notice
from realtime.session.playback import Playback
from realtime.session.policy import PROFILES, Policy
from realtime.session.prompt import whole_words
from realtime.session.settings import SessionSettings
from realtime.session.tools import Tools

INVALID_REQUEST = "invalid_request_error"
SERVER_ERROR = "server_error"


class CutOff(NamedTuple):
    """A response that its listener truncated while it was being said, and when."""

    response_id: str
    at_ms: float


NOTHING_CUT_OFF = CutOff("", -math.inf)


class Context:
    """One writer, the machine's step; nothing outside sees it."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.position = 0  # audio time: samples at 16 kHz heard so far
        self.effects: list[Effect] = []
        self.client_event_id: str | None = None  # of the event being handled
        self.settings = SessionSettings()
        self.policy: Policy = PROFILES["browser"]
        self.drafts = False
        self.is_closely_paced = False  # to stop sending is to fall silent, soon
        self.ids = Identifiers(0)
        self.session_id = ""
        self.conversation_id = ""
        self.expires_at_s = 0
        self.lasts_ms: float | None = None
        self.bounds = Bounds()
        self.conversation = Conversation()
        self.playback = Playback()
        self.flow = Flow()
        self.deadlines = Deadlines()
        self.tools = Tools()
        self.settings_version = 0
        self.cut_off = NOTHING_CUT_OFF
        self.has_prompted = False  # asked whether the user is there, with no sign since

    @property
    def context_version(self) -> tuple[int, int]:
        """Changes with everything that would change a prompt."""
        return (self.conversation.version, self.settings_version)

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def tell(self, notice: Notice) -> None:
        self.effects.append(Notify(notice))

    def show(self, detail: Detail) -> None:
        """Tell a client that asks for details."""
        self.effects.append(NotifyDetail(detail))

    def abort(self, request: str | None) -> None:
        if request is not None:
            self.effects.append(Abort(request))

    def refuse(self, code: str | None, message: str, param: str | None = None) -> None:
        """Answer the client's event with an error; nothing else of it happens."""
        self.tell(ErrorRaised(INVALID_REQUEST, code, message, param, self.client_event_id))

    def report_failure(self, code: str, message: str) -> None:
        """Something of ours failed; it concerns no particular event of the client."""
        self.tell(ErrorRaised(SERVER_ERROR, code, message))

    def expect_tool(self, call_id: str) -> None:
        self.tools.expect(call_id)
        self.deadlines.arm(Due.TOOL, self.now_ms + self.policy.tool_deadline_ms, call_id)

    def settle_tool(self, call_id: str) -> None:
        """The call has its output, or is gone."""
        self.tools.give_up(call_id)
        self.deadlines.disarm(Due.TOOL, call_id)

    def replace_reply_item(self, item: Item) -> None:
        """Update a reply's item; what the client has cut away stays away."""
        self.conversation.update(self.cut_item(item), is_growth=True)

    def cut_item(self, item: Item) -> Item:
        """The item with its audio and transcript cut to where the client truncated it."""
        track = self.playback.get(item.id)
        if track is None or track.cut_ms is None:
            return item
        cut_ms = track.cut_ms
        heard = track.characters_at(min(cut_ms, track.sent_ms))
        parts = list(item.parts)
        for index, part in enumerate(parts):
            if part.kind is PartKind.OUTPUT_AUDIO:
                text = part.text or ""
                kept = text if track.is_heard_out else whole_words(text, heard)
                parts[index] = replace(part, text=kept, audio_ms=cut_ms)
        return replace(item, parts=tuple(parts))
