"""`parley check`: is this configuration ready to serve?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import httpx

from pipelines.types import StageError
from realtime.commands.errors import FAILED, OK, CommandError
from realtime.commands.listening import bind, require_keys
from realtime.commands.models import missing_files, remedy
from realtime.commands.tls import load_tls
from realtime.settings import Settings
from realtime.stage_checks import (
    check_gpus,
    look_into_models,
    missing_models,
    missing_packages,
    voice_problems,
)
from realtime.stage_settings import Higgs, OpenAIWriter, Piper, Stages

REACH_TIMEOUT_S = 5.0  # a server that answers later is no use in a conversation


def check(settings: Settings) -> int:
    """Prints a line per thing looked at; 1 if anything stands in the way."""
    inside = look_into_models(settings.stages)
    findings = [*_find_models(settings, inside.problems)]
    findings += [_find_port(settings), _find_writer(settings)]
    findings += [(False, f"packages: {line}") for line in missing_packages(settings.stages)]
    findings += _find_gpus(settings)
    if isinstance(settings.stages.speaker, Higgs):
        findings += _find_voices(settings.stages.speaker, settings.stages)
    if settings.server.record_dir is not None:
        findings.append(_find_record_folder(settings.server.record_dir))
    for is_good, line in findings:
        print(f"{'ok ' if is_good else 'NO '} {line}")
    for line in inside.unseen:
        print(f"note models: {line}")
    _note_voice(settings)
    return OK if all(is_good for is_good, _ in findings) else FAILED


def _find_models(settings: Settings, inside: Sequence[str]) -> list[tuple[bool, str]]:
    """inside: what is wrong within those that are there."""
    problems = [*missing_models(settings.stages), *inside]
    missing = missing_files(settings)
    if missing:
        names = ", ".join(file.path for file in missing)
        problems.insert(0, f"missing or damaged: {names}; run {remedy(missing)}")
    if not problems:
        return [(True, "models: all there")]
    return [(False, f"models: {problem}") for problem in problems]


def _find_port(settings: Settings) -> tuple[bool, str]:
    server = settings.server
    try:
        require_keys(server)
        tls = load_tls(server)
        bind(server.host, server.port).close()
    except CommandError as error:
        return False, f"port: {error}"
    count = len(server.keys)
    keys = f"{count} key{'s' if count > 1 else ''}" if server.keys else "no keys needed"
    wire = "https and wss" if tls else "http and ws"
    return True, f"port: {server.port} of {server.host} is free, {keys}, {wire}"


def _find_writer(settings: Settings) -> tuple[bool, str]:
    writer = settings.stages.writer
    if not isinstance(writer, OpenAIWriter):
        is_apart = getattr(writer, "process", "inline") == "worker"
        place = "in a process of its own" if is_apart else "in this process"
        return True, f"writer: {writer.kind}, {place}"
    key = writer.key or (os.environ.get(writer.key_env) if writer.key_env else None)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.get(f"{writer.url}/models", headers=headers, timeout=REACH_TIMEOUT_S)
    except httpx.HTTPError as error:
        return False, f"writer: {writer.url} does not answer ({error}); is it running?"
    if answer.status_code in (401, 403):
        return False, f"writer: {writer.url} refuses the key ({answer.status_code})"
    if answer.status_code >= 500:
        return False, f"writer: {writer.url} is out of order ({answer.status_code})"
    return True, f"writer: {writer.url} answers ({answer.status_code})"


def _find_gpus(settings: Settings) -> list[tuple[bool, str]]:
    try:
        check_gpus(settings.stages)
    except StageError as error:
        return [(False, f"gpu: {line}") for line in error.message.splitlines()]
    return []


def _find_voices(speaker: Higgs, stages: Stages) -> list[tuple[bool, str]]:
    problems = voice_problems(stages)
    if problems:
        return [(False, f"voices: {problem}") for problem in problems]
    return [(True, f"voices: {', '.join(speaker.voice_names)}")]


def _find_record_folder(folder: Path) -> tuple[bool, str]:
    """Whether recordings can be written, without making the folder."""
    nearest = next(
        (path for path in (folder, *folder.absolute().parents) if os.path.exists(path)), folder
    )
    if not os.path.isdir(nearest):
        return False, f"record_dir: {folder} cannot be made: {nearest} is no folder"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return False, f"record_dir: {folder} cannot be used: {nearest} may not be written"
    return True, f"record_dir: {folder} can be written"


def _note_voice(settings: Settings) -> None:
    """A name that no voice has is no mistake: clients bring those of other services."""
    voice, speaker = settings.session.voice, settings.stages.speaker
    match speaker:
        case Piper():
            known = (speaker.voice,)
        case Higgs():
            known = speaker.voice_names
        case _:
            return
    if voice not in (None, *known):
        print(f"note session.voice is '{voice}', which is not here: {known[0]} speaks")
