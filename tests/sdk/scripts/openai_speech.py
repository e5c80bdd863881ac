"""What the official SDK makes of a server's speech and transcriptions, as lines of JSON."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, BadRequestError


def tell(name: str, value: Any) -> None:
    sys.stdout.write(json.dumps([name, value]) + "\n")


async def main(base_url: str, key: str, recording: str) -> None:
    client = AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0)
    spoken: dict[str, Any] = {"model": "tts-1", "voice": "alloy", "input": "one two three " * 20}

    whole = await client.audio.speech.create(**spoken, response_format="wav")
    tell("wav", base64.b64encode(whole.content).decode())

    pieces = total = 0
    async with client.audio.speech.with_streaming_response.create(
        **spoken, response_format="pcm"
    ) as streamed:
        async for piece in streamed.iter_bytes():
            pieces += 1
            total += len(piece)
    tell("pcm", {"pieces": pieces, "bytes": total})

    try:
        await client.audio.speech.create(**spoken, speed=9)
    except BadRequestError as error:
        refused = {"status": error.status_code, "code": error.code, "param": error.param}
        tell("refused", refused | {"name": type(error).__name__})

    sound = Path(recording)
    text = await client.audio.transcriptions.create(file=sound, model="whisper-1")
    tell("text", text.text)
    events = await client.audio.transcriptions.create(
        file=sound, model="gpt-4o-transcribe", stream=True
    )
    told = [event.model_dump() async for event in events]
    tell("events", [[event["type"], event.get("delta") or event.get("text")] for event in told])


asyncio.run(main(*sys.argv[1:]))
