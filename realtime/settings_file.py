"""Reads a configuration file and says of every mistake where it is and what would be right."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from realtime.settings import Server, Settings
from realtime.stage_settings import OpenAIWriter

LLM_URL_VARIABLE = "PARLEY_LLM_URL"
LLM_KEY_VARIABLE = "PARLEY_LLM_KEY"
LLM_MODEL_VARIABLE = "PARLEY_LLM_MODEL"
DEFAULT_LLM_MODEL = "default"  # servers of one model take any name
MAX_FILE_BYTES = 1_000_000  # a configuration is a page of text
MAX_SHOWN_CHARACTERS = 80  # of a wrong value
# Settings that hold a key, or the name of a variable in whose place somebody may have put the key:
# what they say is never shown, for messages end in logs.
SECRET_SETTINGS = frozenset({"key", "keys", "key_env", "keys_env"})

YAML_WORDS = {None: "null", True: "true", False: "false"}

KeyPath = tuple[str | int, ...]

# What pydantic's errors of these types ask for, in the words of somebody who writes YAML.
WANTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "string_type": "text",
    "path_type": "a path",
    "tuple_type": "a list",
    "dict_type": "a mapping of names to audio and transcript",  # of voices, the only one
    "model_type": "a section with settings of its own",
    "model_attributes_type": "a section with settings of its own",
    "invalid_key": "text as the name of a setting",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "{min_length} or more characters",
}


class SettingsError(Exception):
    """One line per mistake, ready to be shown."""


@dataclass(frozen=True, slots=True)
class _Document:
    """A parsed file. lines: for each path of keys and indexes, its line, counted from 1."""

    name: str
    data: object
    lines: Mapping[KeyPath, int]

    def line_of(self, path: KeyPath) -> int:
        """The line of a path, or of its nearest parent that the file holds."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def load_settings(path: Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings of a YAML file, or the defaults; the environment may replace the writer.

    Keys that lie in the variable of `server.keys_env` are added to `server.keys`. Raises
    SettingsError.
    """
    settings = Settings() if path is None else _validate(_parse(path))
    return _with_keys(_with_environment(settings, environment), environment)


def _parse(path: Path) -> _Document:
    name = str(path)
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SettingsError(f"{name}: larger than {MAX_FILE_BYTES} bytes; not a configuration")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{name}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{name}: not UTF-8 text (byte {error.start})") from error
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return _Document(name, {}, {})
        lines: dict[KeyPath, int] = {}
        _mark(name, root, (), lines, set())
        return _Document(name, loader.construct_document(root), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = " ".join(str(error.problem or error.context).split())
        raise SettingsError(f"{name}:{line}: not valid YAML: {problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise SettingsError(f"{name}: not valid YAML: {problem}") from error
    finally:
        loader.dispose()


def _mark(
    name: str, node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int], open_nodes: set[int]
) -> None:
    """Note each node's line; refuse what YAML allows and a configuration cannot mean."""
    lines.setdefault(path, node.start_mark.line + 1)
    if id(node) in open_nodes:
        raise SettingsError(f"{name}:{node.start_mark.line + 1}: an alias of its own parent")
    open_nodes.add(id(node))
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            word = str(key.value)
            if word in seen:
                raise SettingsError(f"{name}:{line}: '{_dotted((*path, word))}' is set twice")
            seen.add(word)
            lines[(*path, word)] = line
            _mark(name, value, (*path, word), lines, open_nodes)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _mark(name, value, (*path, index), lines, open_nodes)
    open_nodes.discard(id(node))


def _validate(document: _Document) -> Settings:
    if document.data is None:
        return Settings()
    try:
        return Settings.model_validate(document.data)
    except ValidationError as error:
        mistakes = [_explain(document, details) for details in error.errors(include_url=False)]
        mistakes.sort(key=lambda mistake: mistake[0])
        raise SettingsError(
            "\n".join(f"{document.name}:{m[0]}: {m[1]}" for m in mistakes)
        ) from error


def _explain(document: _Document, details: ErrorDetails) -> tuple[int, str]:
    """The line of a mistake, and what to do about it."""
    path = _data_path(document.data, details["loc"])
    line, field = document.line_of(path), _dotted(path)
    context: dict[str, Any] = details.get("ctx") or {}
    match details["type"]:
        case "extra_forbidden":
            known = sorted(_known_keys(details["loc"]))
            nearest = difflib.get_close_matches(str(path[-1]), known, n=1)
            hint = f"did you mean '{nearest[0]}'? " if nearest else ""
            return line, f"'{field}' is no setting; {hint}known here: {', '.join(known)}"
        case "missing":
            return line, f"'{field}' is missing"
        case "union_tag_not_found":
            return line, f"'{field}' needs {context['discriminator']}"
        case "union_tag_invalid":
            tag = str(context["discriminator"]).strip("'")
            line = document.line_of((*path, tag))
            given = _given(details["input"], tag, context["tag"])
            return line, f"'{field}.{tag}' is {given}; allowed: {context['expected_tags']}"
        case "value_error":
            return line, f"'{field}': {context['error']}"
        case _:
            return line, f"'{field}' is {what_is_wrong(details)}"


def what_is_wrong(details: ErrorDetails) -> str:
    """What one value is and should be, without pydantic's wording."""
    context: dict[str, Any] = details.get("ctx") or {}
    if details["type"] == "value_error":
        return str(context["error"])
    message = details["msg"].removeprefix("Input should be ")
    wanted = WANTED.get(details["type"], "").format(**context) or message
    names = [step for step in details["loc"] if isinstance(step, str)]
    if names and names[-1] in SECRET_SETTINGS:
        return f"wrong (not shown); allowed: {wanted}"
    return f"{_shown(details['input'])}; allowed: {wanted}"


def _data_path(data: object, location: KeyPath) -> KeyPath:
    """A location without the names that pydantic adds for the members of unions."""
    path: list[str | int] = []
    for position, step in enumerate(location):
        is_last = position == len(location) - 1
        if isinstance(data, dict) and step in data:
            data = data[step]
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        elif not is_last or _is_tag(data, step):
            continue
        path.append(step)
    return tuple(path)


def _is_tag(data: object, step: object) -> bool:
    return isinstance(data, dict) and step in (data.get("kind"), data.get("type"))


def _known_keys(location: KeyPath) -> Iterator[str]:
    """The keys of the section in which an unknown key stands."""
    models: list[type[BaseModel]] = [Settings]
    for step in location[:-1]:
        inner = [model for parent in models for model in _members(parent, str(step))]
        tagged = [model for model in models if _has_tag(model, str(step))]
        models = inner or tagged or models  # a name in a dictionary leads to no other section
    for model in models:
        yield from model.model_fields


def _members(parent: type[BaseModel], name: str) -> list[type[BaseModel]]:
    field = parent.model_fields.get(name)
    return [] if field is None else list(_models_in(field.annotation))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_in(argument)


def _has_tag(model: type[BaseModel], tag: str) -> bool:
    for name in ("kind", "type"):
        field = model.model_fields.get(name)
        if field is not None and tag in getattr(field.annotation, "__args__", ()):
            return True
    return False


def _with_environment(settings: Settings, environment: Mapping[str, str]) -> Settings:
    url = environment.get(LLM_URL_VARIABLE, "").strip()
    if not url:
        for name in (LLM_KEY_VARIABLE, LLM_MODEL_VARIABLE):
            if environment.get(name):
                raise SettingsError(f"{name} is set, but {LLM_URL_VARIABLE} is not")
        return settings
    try:
        writer = OpenAIWriter(
            kind="openai",
            url=url,
            model=environment.get(LLM_MODEL_VARIABLE) or DEFAULT_LLM_MODEL,
            key=environment.get(LLM_KEY_VARIABLE, "").strip() or None,
        )
    except ValidationError as error:
        problem = what_is_wrong(error.errors(include_url=False)[0])
        raise SettingsError(f"{LLM_URL_VARIABLE} is '{url}': {problem}") from error
    stages = settings.stages.model_copy(update={"writer": writer})
    return settings.model_copy(update={"stages": stages})


def _with_keys(settings: Settings, environment: Mapping[str, str]) -> Settings:
    name = settings.server.keys_env
    if name is None:
        return settings
    keys = [key.strip() for key in environment.get(name, "").split(",") if key.strip()]
    if not keys:
        # A server that was meant to have keys must not open without them. A variable that is not
        # there stays unnamed: it may be a key, put in the place of a name.
        named = f"{name}, which" if name in environment else "a variable that is not set and"
        raise SettingsError(
            f"server.keys_env names {named} holds no key: put one or more there, separated by "
            "commas, or leave the setting out"
        )
    merged = {**settings.server.model_dump(), "keys": (*settings.server.keys, *keys)}
    try:
        server = Server.model_validate(merged)
    except ValidationError as error:
        problem = what_is_wrong(error.errors(include_url=False)[0])
        raise SettingsError(f"{name}: {problem}") from error
    return settings.model_copy(update={"server": server})


def _dotted(path: KeyPath) -> str:
    return ".".join(str(step) for step in path) or "the file"


def _given(section: object, name: str, text: str) -> str:
    """A wrong value as the file has it; text: as pydantic tells it."""
    return _shown(section[name] if isinstance(section, dict) and name in section else text)


def _shown(value: object) -> str:
    """As YAML writes what is no text."""
    is_word = value is None or isinstance(value, bool)
    text = YAML_WORDS[value] if is_word else repr(_without_secrets(value))
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}..."


def _without_secrets(value: object) -> object:
    """What a section in the wrong place holds, but for the keys in it."""
    match value:
        case dict():
            return {
                name: "..." if name in SECRET_SETTINGS else _without_secrets(inner)
                for name, inner in value.items()
            }
        case list():
            return [_without_secrets(inner) for inner in value]
        case _:
            return value
