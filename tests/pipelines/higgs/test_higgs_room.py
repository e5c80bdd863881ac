"""What is told of a voice's folder from its configuration alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from pipelines.higgs.config import BackboneConfig, HiggsConfig
from pipelines.higgs.model.backbone import KeyValueCache
from pipelines.higgs.parts import codec_folder
from pipelines.higgs.room import cache_bytes
from pipelines.higgs.synthetic.models import tiny_config
from pipelines.higgs.v2.config import V2Config
from pipelines.higgs.v2.synthetic import converted_config, published_config

STREAMS, POSITIONS, PREFIXES = 3, 320, 5
V2_PUBLISHED = published_config()
V2_CONVERTED = converted_config(V2_PUBLISHED)


def write(folder: Path, content: object) -> Path:
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("content", "backbone"),
    [
        (tiny_config(), HiggsConfig.of(tiny_config()).backbone),
        (V2_PUBLISHED, V2Config.of(V2_PUBLISHED).backbone),
        (V2_CONVERTED, V2Config.of(V2_CONVERTED).backbone),
    ],
    ids=["v3", "v2 as published", "v2 converted"],
)
def test_the_caches_are_as_large_as_the_decoder_makes_them(
    tmp_path: Path, content: Mapping[str, Any], backbone: BackboneConfig
) -> None:
    cache = KeyValueCache.empty(
        backbone,
        slots=STREAMS + PREFIXES,
        positions=POSITIONS,
        device="meta",
        dtype=torch.bfloat16,
    )
    made_bytes = cache.keys.nbytes + cache.values.nbytes
    assert cache_bytes(write(tmp_path, content), STREAMS, POSITIONS, PREFIXES) == made_bytes


@pytest.mark.parametrize("content", [[], {}, {"architectures": ["Other"]}])
def test_of_what_is_no_voice_nothing_is_told(tmp_path: Path, content: object) -> None:
    for folder in (tmp_path, write(tmp_path, content)):
        assert cache_bytes(folder, STREAMS, POSITIONS, PREFIXES) == 0
        assert codec_folder(folder) is None


def test_v2_alone_has_its_codec_in_a_folder(tmp_path: Path) -> None:
    assert codec_folder(write(tmp_path, tiny_config())) is None
    for content in (V2_PUBLISHED, V2_CONVERTED):
        assert codec_folder(write(tmp_path, content)) == tmp_path / "codec"
