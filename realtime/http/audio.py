"""`/v1/audio`: the stages without a conversation, as one router."""

from __future__ import annotations

from fastapi import APIRouter

from realtime.http.reception import Reception
from realtime.http.references.fetching import ReferenceFetcher, ReferenceRules
from realtime.http.speech.routes import create_speech_routes
from realtime.http.speech_socket.routes import create_speech_socket
from realtime.http.transcription.routes import create_transcription_routes
from realtime.http.voices.index import VoiceIndex
from realtime.http.voices.routes import create_voice_routes
from realtime.voices.shelf import VoiceShelf


def create_audio_routes(
    reception: Reception, shelf: VoiceShelf, rules: ReferenceRules
) -> APIRouter:
    """shelf: of uploaded voices. rules: which recordings a request may point to."""
    index, fetcher = VoiceIndex(shelf), ReferenceFetcher(rules)
    router = APIRouter()
    router.include_router(
        create_speech_routes(reception, index.find, index.names, fetcher.fetch, fetcher.read_path)
    )
    router.include_router(create_speech_socket(reception, index.find, index.names))
    router.include_router(create_voice_routes(reception, shelf))
    router.include_router(create_transcription_routes(reception))
    return router
