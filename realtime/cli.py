"""The `parley` command: reads arguments, calls `realtime.commands`, turns errors into lines."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from realtime.commands.errors import USAGE, CommandError
from realtime.settings import Server, Settings
from realtime.settings_file import SettingsError, load_settings, what_is_wrong

KEY_VARIABLE = "PARLEY_KEY"  # `talk` shows this key; `serve` and `check` accept one more
INTERRUPTED = 130  # what shells give to a program ended by Ctrl-C

Command = Callable[[argparse.Namespace], int]


@dataclass(frozen=True, slots=True)
class Verb:
    """A sub-command: its name, what it does in a line, its arguments and its code."""

    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Command


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code: 0 done, 1 failed, 2 used wrongly."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        return options.run(options)
    except SettingsError as error:
        print(error, file=sys.stderr)
        return USAGE
    except CommandError as error:
        print(f"parley: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output has gone; Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED


class _Version(argparse.Action):
    """Looked up only where it is asked for: that takes as long as the rest of the start."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"parley {version('parley')}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="parley", description="A realtime voice-agent server and its tools."
    )
    parser.add_argument("--version", action=_Version, help="print the version and end")
    verbs = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for verb in VERBS:
        inner = verbs.add_parser(verb.name, help=verb.summary, description=verb.summary)
        verb.add_arguments(inner)
        inner.set_defaults(run=verb.run)
    return parser


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", type=_path, help="a YAML file (default: built in)")
    parser.add_argument(
        "--config", dest="config_option", metavar="CONFIG", type=_path, help="likewise"
    )


def _config_of(options: argparse.Namespace) -> Path | None:
    """Given as `--config CONFIG`, as `models fetch` takes it, or without the name."""
    if options.config is not None and options.config_option is not None:
        raise CommandError("give the configuration once: CONFIG or --config CONFIG", USAGE)
    return options.config or options.config_option


def _path(text: str) -> Path:
    """A quoted `~` is no matter of the shell's: `make serve CONFIG=~/parley.yaml`."""
    return Path(text).expanduser()


# ---- serve -----------------------------------------------------------------------------------


def _add_serve(parser: argparse.ArgumentParser) -> None:
    _add_config(parser)
    parser.add_argument("--host", help="address to listen on, instead of the configured one")
    parser.add_argument("--port", type=int, help="port to listen on; 0 takes a free one")


def _serve(options: argparse.Namespace) -> int:
    # NumPy's own threads spin where they wait for each other: beside busy neighbours a product of
    # a millisecond takes half a second. The variable is read once, when NumPy is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from realtime.commands.serve import serve

    return serve(_with_options(load_settings(_config_of(options)), options.host, options.port))


def _with_options(settings: Settings, host: str | None = None, port: int | None = None) -> Settings:
    """What the command line and the environment say of the server goes before the file."""
    changes: dict[str, object] = {}
    if host is not None:
        changes["host"] = host
    if port is not None:
        changes["port"] = port
    key = _key_of_environment()
    if key is not None:
        changes["keys"] = (*settings.server.keys, key)
    try:
        server = Server.model_validate({**settings.server.model_dump(), **changes})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        source = f"${KEY_VARIABLE}" if first["loc"] == ("keys",) else f"--{first['loc'][0]}"
        raise CommandError(f"{source}: {what_is_wrong(first)}", USAGE) from error
    return settings.model_copy(update={"server": server})


def _key_of_environment() -> str | None:
    """Without the line's end that a file leaves which was read into the variable."""
    return os.environ.get(KEY_VARIABLE, "").strip() or None


# ---- talk ------------------------------------------------------------------------------------


def _add_talk(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", nargs="?", type=Path, help="a sound file to say")
    parser.add_argument("--mic", action="store_true", help="speak and listen with the sound card")
    parser.add_argument(
        "--text",
        help="type this instead of speaking, or before it: a sound file then waits for the reply",
    )
    parser.add_argument("--out", type=Path, metavar="WAV", help="write what was heard to this file")
    _add_server(parser)


def _talk(options: argparse.Namespace) -> int:
    from realtime.commands.addresses import DEFAULT_URL
    from realtime.commands.talk import TalkOptions, talk

    if options.recording is None and not options.mic and options.text is None:
        raise CommandError("nothing to say: give a sound file, --mic or --text", USAGE)
    if options.recording is not None and options.mic:
        raise CommandError("give a sound file or --mic, not both", USAGE)
    if options.text is not None and not options.text.strip():
        raise CommandError("--text is empty: write what to say", USAGE)
    return talk(
        TalkOptions(
            url=options.url or DEFAULT_URL,
            key=options.key or _key_of_environment(),
            recording=options.recording,
            text=options.text,
            microphone=options.mic,
            out=options.out,
        )
    )


# ---- say, transcribe -------------------------------------------------------------------------


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", help="the server (default: http://127.0.0.1:8000)")
    parser.add_argument("--key", help=f"a key of the server (default: ${KEY_VARIABLE})")


def _add_say(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", help="what to say; - reads it from standard input")
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="FILE",
        help="write to this file (.wav, .mp3, .opus, .ogg, .aac, .flac, .pcm) instead of playing",
    )
    parser.add_argument("--voice", help="a voice of the server (default: its first)")
    parser.add_argument("--speed", type=float, help="0.25 to 4 (default: 1)")
    parser.add_argument(
        "--stream", action="store_true", help="play or write while it is spoken, not afterwards"
    )
    _add_server(parser)


def _say(options: argparse.Namespace) -> int:
    from realtime.commands.addresses import DEFAULT_URL
    from realtime.commands.say import SayOptions, read_text, say

    return say(
        SayOptions(
            url=options.url or DEFAULT_URL,
            key=options.key or _key_of_environment(),
            text=read_text(options.text),
            voice=options.voice,
            speed=options.speed,
            out=options.out,
            is_streamed=options.stream,
        )
    )


def _add_transcribe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recording", type=Path, metavar="FILE", help="a sound file; - reads it from standard input"
    )
    parser.add_argument(
        "--format",
        choices=("text", "srt", "vtt", "json"),
        default="text",
        help="of the transcript (default: text)",
    )
    parser.add_argument("--language", help="what is spoken, as en or de (default: found out)")
    _add_server(parser)


def _transcribe(options: argparse.Namespace) -> int:
    from realtime.commands.addresses import DEFAULT_URL
    from realtime.commands.transcribe import TranscribeOptions, transcribe

    return transcribe(
        TranscribeOptions(
            url=options.url or DEFAULT_URL,
            key=options.key or _key_of_environment(),
            recording=options.recording,
            format=options.format,
            language=options.language,
        )
    )


# ---- replay, models, check -------------------------------------------------------------------


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", type=Path, help="a recording of a session's events")


def _replay(options: argparse.Namespace) -> int:
    from realtime.commands.replay import replay_record

    return replay_record(options.record)


def _add_models(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    actions.add_parser("list", help="every known file and its state").set_defaults(action="list")
    fetch = actions.add_parser("fetch", help="bring files into the model store")
    fetch.add_argument("group", nargs="?", help="embedded, better or tiny")
    fetch.add_argument("--config", type=_path, help="what this configuration needs")
    fetch.set_defaults(action="fetch")
    verify = actions.add_parser("verify", help="hash the files in the model store")
    verify.add_argument("group", nargs="?", help="only this group")
    verify.set_defaults(action="verify")


def _models(options: argparse.Namespace) -> int:
    from realtime.commands import models

    match options.action:
        case "list":
            return models.list_models()
        case "verify":
            return models.verify_models(options.group)
        case _:
            if (options.group is None) == (options.config is None):
                raise CommandError("say what to fetch: a group, or --config CONFIG", USAGE)
            if options.group is not None:
                _refuse_configuration(options.group)
                return models.fetch_models(options.group)
            return models.fetch_models_for(load_settings(options.config))


def _refuse_configuration(group: str) -> None:
    """No group is called like a file."""
    if Path(group).suffix in (".yaml", ".yml") or Path(group).expanduser().is_file():
        raise CommandError(
            f"{group} is no group but a configuration: run "
            f"`parley models fetch --config {shlex.quote(group)}`",
            USAGE,
        )


def _check(options: argparse.Namespace) -> int:
    from realtime.commands.check import check

    return check(_with_options(load_settings(_config_of(options))))


VERBS = (
    Verb("serve", "Start the server.", _add_serve, _serve),
    Verb("talk", "Talk to a running server with a recording or a microphone.", _add_talk, _talk),
    Verb("say", "Have a running server speak a text.", _add_say, _say),
    Verb(
        "transcribe", "Have a running server write a recording down.", _add_transcribe, _transcribe
    ),
    Verb("replay", "Run a recorded session again and compare.", _add_replay, _replay),
    Verb("models", "List, fetch or verify model files.", _add_models, _models),
    Verb("check", "Check a configuration without starting it.", _add_config, _check),
)


if __name__ == "__main__":
    sys.exit(main())
