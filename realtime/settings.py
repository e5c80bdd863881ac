"""Typed configuration: what a YAML file under configs/ may say, and nothing else.

`realtime.settings_file` reads such a file and turns every mistake into a line that names it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from realtime.access.keys import KEY_RULE, is_key
from realtime.access.origins import LOOPBACK_HOSTS, what_is_wrong_with_origin
from realtime.stage_settings import OpenAIWriter, Section, Stages

# Spelled out: small language models fall back into lists when they are only asked for brevity.
DEFAULT_INSTRUCTIONS = (
    "You are a friendly voice assistant on a phone call. Answer with one or two short spoken "
    "sentences, at most thirty words. Never use lists or markdown. If you do not know, say so."
)

Milliseconds = Annotated[int, Field(ge=0, le=3_600_000)]  # an hour: more is a typing mistake
Port = Annotated[int, Field(ge=1, le=65_535)]
Phrase = Annotated[str, Field(max_length=200)]  # a sentence or two: it cuts in

# Hosted models mostly begin within a second; after two a caller asks whether anybody is there.
REMOTE_FILLER_AFTER_MS = 2000


class Server(Section):
    """Where the server listens, and how much it takes on.

    max_sessions: conversations at once; further clients are told to come back later.
    lead_ms: how far audio may run ahead of its playback; null sends as fast as it is made. What
        has been sent is still heard when a reply is held, so a large one makes it slow to stop.
    drain_ms: how long a stopping server lets people finish.
    resume_ms: how long a session that was lost waits for its client, if that has asked for it; 0:
        every session ends with its socket.
    record_dir: a folder for recordings of every session's events (`parley replay`); null: none.
    keys: bearer keys, one of which every client must show; without any, loopback only.
    keys_env: the name of an environment variable with more keys, separated by commas.
    origins: web origins that may connect beside the server's own pages, those of apps included
        (capacitor://localhost).
    tls_certificate, tls_key: PEM files, for https and wss; the certificate's file holds its chain.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    max_sessions: Annotated[int, Field(ge=1, le=10_000)] = 16
    lead_ms: Annotated[int, Field(ge=40, le=60_000)] | None = 120
    drain_ms: Milliseconds = 5000
    resume_ms: Milliseconds = 60_000
    record_dir: Path | None = None
    keys: tuple[str, ...] = ()
    keys_env: Annotated[str, Field(min_length=1)] | None = None
    origins: tuple[str, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None

    @field_validator("keys")
    @classmethod
    def _keys_are_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(is_key, keys)):
            raise ValueError(KEY_RULE)
        return keys

    @field_validator("origins")
    @classmethod
    def _origins_are_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for problem in map(what_is_wrong_with_origin, origins):
            if problem is not None:
                raise ValueError(problem)
        return origins

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Server:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together: give both or none")
        return self

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK_HOSTS

    @property
    def has_tls(self) -> bool:
        return self.tls_certificate is not None


class Limits(Section):
    """How much one client may ask for.

    session_minutes: how long a session lasts at most; its client is told, and may begin another.
    sessions_per_key: how many each of server.keys may hold at once; null: server.max_sessions.
    events_per_second: of one session, beside audio; faster clients are read more slowly.
    appends_per_second: the same of pieces of audio.
    items: of one conversation; when it holds as many, its client can add no more.
    instruction_characters: of a session or a response.
    tools: functions of a session or a response; the wire takes no more than 128.
    tool_characters: of all of them together, as JSON.
    message_mib: the largest message; 15 MiB of audio take 20 in base64, and JSON beside them.
    """

    session_minutes: Annotated[int, Field(ge=1, le=10_080)] = 60
    sessions_per_key: Annotated[int, Field(ge=1, le=10_000)] | None = None
    events_per_second: Annotated[int, Field(ge=10, le=100_000)] = 500
    appends_per_second: Annotated[int, Field(ge=50, le=100_000)] = 1000
    items: Annotated[int, Field(ge=10, le=1_000_000)] = 5000
    instruction_characters: Annotated[int, Field(ge=1000, le=1_000_000)] = 100_000
    tools: Annotated[int, Field(ge=0, le=128)] = 128
    tool_characters: Annotated[int, Field(ge=0, le=1_000_000)] = 250_000
    message_mib: Annotated[int, Field(ge=22, le=1024)] = 32


class SemanticVadDefault(Section):
    """A turn ends when the judge believes that the speaker has finished."""

    type: Literal["semantic_vad"] = "semantic_vad"
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    create_response: bool = True
    interrupt_response: bool = True


class ServerVadDefault(Section):
    """A turn ends after a fixed silence."""

    type: Literal["server_vad"]
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5
    prefix_padding_ms: Annotated[int, Field(ge=0, le=5000)] = 300
    silence_duration_ms: Annotated[int, Field(ge=100, le=10_000)] = 500
    idle_timeout_ms: Annotated[int, Field(ge=5000, le=30_000)] | None = None
    create_response: bool = True
    interrupt_response: bool = True


TurnDetectionDefault = Annotated[SemanticVadDefault | ServerVadDefault, Field(discriminator="type")]


class SessionDefaults(Section):
    """What a session has until its client says otherwise.

    voice: null takes the speaker's first voice.
    drafts: work ahead of the end of a turn; null: yes, unless the writer is remote, where every
        pause would cost money.
    profile: which thresholds of turn-taking hold.
    """

    instructions: Annotated[str, Field(max_length=100_000)] = DEFAULT_INSTRUCTIONS
    voice: str | None = None
    turn_detection: TurnDetectionDefault | None = SemanticVadDefault()
    drafts: bool | None = None
    profile: Literal["browser", "phone"] = "browser"


class Replies(Section):
    """What the voice says of its own accord, so that nobody is left in silence.

    filler_after_ms: how long a caller waits for the first words before one of `fillers`; auto:
        two seconds where the writer is remote, else never; null: never.
    fillers: said in turn; they are sound alone, no part of the reply's text.
    apology: when the writer fails before anything was said; null: silence.
    empty: when the writer ends without anything to say; null: silence.
    """

    filler_after_ms: int | Literal["auto"] | None = "auto"
    fillers: Annotated[tuple[Phrase, ...], Field(max_length=100)] = ("One moment.",)
    apology: Phrase | None = "Sorry, I can't answer right now."
    empty: Phrase | None = "I have no answer to that."

    @field_validator("filler_after_ms", mode="before")
    @classmethod
    def _is_a_time(cls, value: object) -> object:
        is_time = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if value is None or value == "auto" or is_time:
            return value
        raise ValueError(f"{value!r} is no time; write milliseconds, auto or null")


class Speech(Section):
    """Voices of one's own: uploaded ones, and recordings that a request points to.

    voices_dir: a folder for uploaded voices; servers that share one share its voices; null: the
        user's own (~/.local/share/parley/voices).
    remote_references: whether recordings are fetched over http and https; never from private
        addresses.
    reference_ports: on which ports, then.
    reference_folders: whose files clients may have read as recordings.
    """

    voices_dir: Path | None = None
    remote_references: bool = False
    reference_ports: Annotated[tuple[Port, ...], Field(min_length=1)] = (80, 443)
    reference_folders: tuple[Path, ...] = ()

    @field_validator("reference_folders")
    @classmethod
    def _folders_are_absolute(cls, folders: tuple[Path, ...]) -> tuple[Path, ...]:
        """Clients name absolute paths; and which folders those are must not hang on where the
        server was started."""
        named = tuple(folder.expanduser() for folder in folders)
        for folder in named:
            if not folder.is_absolute():
                raise ValueError(f"{folder} is no absolute path; write it from / on")
        return named

    @property
    def voices_folder(self) -> Path:
        if self.voices_dir is not None:
            return self.voices_dir.expanduser()
        return Path.home() / ".local" / "share" / "parley" / "voices"


class Settings(Section):
    """A whole configuration."""

    server: Server = Server()
    limits: Limits = Limits()
    session: SessionDefaults = SessionDefaults()
    reply: Replies = Replies()
    speech: Speech = Speech()
    stages: Stages = Stages()

    @property
    def drafts(self) -> bool:
        """Whether sessions work ahead of the end of a turn."""
        if self.session.drafts is not None:
            return self.session.drafts
        return not self._writer_is_remote

    @property
    def filler_after_ms(self) -> int | None:
        """How long callers wait for a reply's first words in silence; None: as long as it takes."""
        if self.reply.filler_after_ms != "auto":
            return self.reply.filler_after_ms
        return REMOTE_FILLER_AFTER_MS if self._writer_is_remote else None

    @property
    def _writer_is_remote(self) -> bool:
        return isinstance(self.stages.writer, OpenAIWriter)
