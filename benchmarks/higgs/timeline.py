"""The stations of one turn, on the server's clock and on the client's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from realtime.commands.playback import Playback

# What the client sees, by event, in the words of the server's own stations where it has them.
CLIENT_STATIONS = {
    "input_audio_buffer.speech_stopped": "turn_end",
    "input_audio_buffer.committed": "committed",
    "conversation.item.input_audio_transcription.completed": "transcript",
    "response.created": "response_created",
    "response.output_audio_transcript.delta": "first_token",
    "response.output_audio.delta": "first_audio_sent",
    "response.done": "done",
}
SOUND = "first sound heard"
LAST_HEARD = "last sound heard"


@dataclass(slots=True)
class Timeline:
    """speech_end_ms: on the client's clock; 0 until it is known."""

    speech_end_ms: float = 0.0
    seen_ms: dict[str, float] = field(default_factory=dict[str, float])
    server_ms: dict[str, int] = field(default_factory=dict[str, int])
    transcript: str | None = None
    said: str = ""
    status: str | None = None
    output_tokens: int | None = None
    audio_ms: float = 0.0
    gaps_ms: list[float] = field(default_factory=list[float])
    errors: list[str] = field(default_factory=list[str])
    _item: str | None = None

    def note(self, at_ms: float, event: dict[str, Any]) -> None:
        """An event of the server; the first of each kind is a station."""
        kind = event["type"]
        if kind in CLIENT_STATIONS:
            self.seen_ms.setdefault(CLIENT_STATIONS[kind], at_ms)
        match kind:
            case "conversation.item.input_audio_transcription.completed":
                self.transcript = event["transcript"]
            case "response.output_audio_transcript.delta":
                self.said += event["delta"]
            case "response.output_audio.delta":
                self._item = event["item_id"]
            case "response.done":
                response = event["response"]
                self.status = response["status"]
                self.output_tokens = (response.get("usage") or {}).get("output_tokens")
                self.server_ms = (event.get("parley") or {}).get("latency_ms", {})
            case _:
                pass

    def heard(self, playback: Playback, errors: list[str]) -> None:
        """What came out of the loudspeaker, once all has been played."""
        self.errors = list(errors)
        if self._item is None:
            return
        self.audio_ms = playback.heard_ms(self._item)
        self.gaps_ms = playback.gaps_ms(self._item)
        sound_ms = playback.first_audible_ms(self._item)
        if sound_ms is not None:
            self.seen_ms[SOUND] = sound_ms
        self.seen_ms[LAST_HEARD] = playback.end_ms

    @property
    def first_sound_ms(self) -> float | None:
        """From the end of speech to the first audible sample; None: silence."""
        at_ms = self.seen_ms.get(SOUND)
        return None if at_ms is None else at_ms - self.speech_end_ms

    def client_ms(self) -> dict[str, float]:
        return {name: at_ms - self.speech_end_ms for name, at_ms in self.seen_ms.items()}

    def rows(self) -> list[tuple[str, int | None, int | None]]:
        """(station, on the server, at the client), in their order."""
        client_ms = {name: round(at_ms) for name, at_ms in self.client_ms().items()}
        names = dict.fromkeys([*self.server_ms, *client_ms])
        at_ms = {name: self.server_ms.get(name, client_ms.get(name, 0)) for name in names}
        return [
            (name, self.server_ms.get(name), client_ms.get(name))
            for name in sorted(names, key=lambda name: at_ms[name])
        ]

    def notes(self) -> list[str]:
        """What else is to be said of it, in lines."""
        stalls = f", {len(self.gaps_ms)} gaps of {max(self.gaps_ms):.0f} ms" if self.gaps_ms else ""
        lines = [
            f"heard {self.transcript!r}; {self.status}, {self.output_tokens} tokens, "
            f"{self.audio_ms / 1000:.1f} s of audio{stalls}; said {self.said[:60]!r}"
        ]
        return lines + [f"error: {error}" for error in self.errors]

    def figures(self) -> dict[str, Any]:
        return {
            "server_ms": self.server_ms,
            "client_ms": self.client_ms(),
            "status": self.status,
            "transcript": self.transcript,
            "said": self.said,
            "output_tokens": self.output_tokens,
            "audio_ms": self.audio_ms,
            "gaps_ms": self.gaps_ms,
            "errors": self.errors,
        }
