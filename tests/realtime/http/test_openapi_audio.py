"""What `/openapi.json` says of the audio routes is what they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from pipelines.fakes.cascade import FakeCascade
from realtime.app import create_app
from realtime.http.description import Failure
from realtime.http.speech.description import FailedLine, MadeLine
from realtime.http.transcription.description import Verbose, Written
from realtime.http.voices.description import (
    ConfiguredVoice,
    ConsentedVoice,
    DeletedVoice,
    VoiceList,
)
from realtime.settings import Settings
from tests.realtime.http import transcription_rig
from tests.realtime.http.speech_server import (
    House,
    SpeechServer,
    make_cascade,
    on_routes,
    speak,
)
from tests.realtime.http.voice_desk import GOOD, PATH, Desk


@pytest.fixture(scope="module")
def openapi() -> dict[str, Any]:
    return create_app(Settings(), cascade=FakeCascade()).asgi.openapi()


def audio_routes(openapi: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method} {path}": operation
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/v1/audio/")
    }


def told_types(openapi: dict[str, Any], path: str) -> set[str]:
    return set(openapi["paths"][path]["post"]["responses"]["200"]["content"])


def media_type(answer: Any) -> str:
    return answer.headers["content-type"].partition(";")[0]


def test_errors_have_one_shape_and_no_route_tells_of_another(openapi: dict[str, Any]) -> None:
    shape = {"$ref": "#/components/schemas/Failure"}
    routes = audio_routes(openapi)
    assert len(routes) == 8
    for name, operation in routes.items():
        answers = operation["responses"]
        assert {"200", "401", "403", "503", "default"} <= answers.keys(), name
        assert "422" not in answers, name
        for status, answer in answers.items():
            if status != "200":
                assert answer["content"] == {"application/json": {"schema": shape}}, name
        if name.startswith("post"):
            assert {"400", "408", "413", "415", "429"} <= answers.keys(), name
            assert "Retry-After" in answers["429"]["headers"]
    assert "HTTPValidationError" not in openapi["components"]["schemas"]


def test_every_field_that_may_be_sent_is_described(openapi: dict[str, Any]) -> None:
    for name, operation in audio_routes(openapi).items():
        for content in operation.get("requestBody", {}).get("content", {}).values():
            for field, schema in content["schema"]["properties"].items():
                assert schema.get("description"), (name, field)


def test_speech_is_sent_as_the_types_that_are_told(openapi: dict[str, Any]) -> None:
    ways: list[dict[str, Any]] = [
        {"response_format": word} for word in ("mp3", "opus", "aac", "flac", "wav", "pcm")
    ]
    sent = {media_type(speak(input="Hi.", **way)) for way in [*ways, {"stream_format": "sse"}]}
    assert sent == told_types(openapi, "/v1/audio/speech")


def test_lines_of_a_batch_are_as_told(openapi: dict[str, Any]) -> None:
    async def ask(server: SpeechServer) -> list[dict[str, Any]]:
        return await server.batch(items=[{"input": "Hi.", "id": "a"}, {"input": "Hi.", "seed": -1}])

    made, failed = on_routes(ask, House(make_cascade()))
    assert MadeLine.model_validate(made).id == "a"
    assert FailedLine.model_validate(failed).error.param == "items[1].seed"
    assert told_types(openapi, "/v1/audio/speech/batch") == {"application/x-ndjson"}


def test_transcripts_are_sent_as_told(openapi: dict[str, Any]) -> None:
    sent: set[str] = set()
    for word in ("json", "text", "srt", "vtt", "verbose_json"):
        answer = transcription_rig.post(fields={"response_format": word})
        assert answer.status_code == 200
        sent.add(media_type(answer))
        if word == "json":
            Written.model_validate(answer.json())
        elif word == "verbose_json":
            Verbose.model_validate(answer.json())
    assert sent == told_types(openapi, "/v1/audio/translations")
    sent.add(media_type(transcription_rig.post(fields={"stream": "true"})))
    assert sent == told_types(openapi, "/v1/audio/transcriptions")


def test_voices_are_shown_as_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ConsentedVoice.model_validate(desk.upload(GOOD).json())
    assert len(VoiceList.model_validate(desk.ask("GET").json()).data) == 2
    shown = TypeAdapter[Any](ConfiguredVoice | ConsentedVoice)
    assert isinstance(shown.validate_python(desk.ask("GET", f"{PATH}/anna").json()), ConsentedVoice)
    assert isinstance(
        shown.validate_python(desk.ask("GET", f"{PATH}/default").json()), ConfiguredVoice
    )
    Failure.model_validate(desk.ask("GET", f"{PATH}/nobody").json())
    DeletedVoice.model_validate(desk.ask("DELETE", f"{PATH}/anna").json())
