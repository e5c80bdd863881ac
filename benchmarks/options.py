"""The options that benchmarks share."""

from __future__ import annotations

import argparse
from pathlib import Path


def parser(description: str | None) -> argparse.ArgumentParser:
    """`--json` for the figures; more is added by the benchmark."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", type=Path, help="where the figures go")
    return made


def add_server(made: argparse.ArgumentParser) -> None:
    made.add_argument("--url", help="a running server; without it one is started")
    made.add_argument("--config", help="the configuration of a started server")


def add_recordings(made: argparse.ArgumentParser, count: int | None) -> None:
    made.add_argument("folder", type=Path, help="recordings, with manifest.jsonl if there is one")
    made.add_argument("--count", type=int, default=count, help="how many recordings at most")
