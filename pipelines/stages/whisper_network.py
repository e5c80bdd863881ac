"""One pass through Whisper's network in PyTorch: the encoder, and the decoder token by token.

The modules and weights are those of `transformers`; the passes are written out, since the encoder
there takes 30 s of sound alone, and the decoder's cache is called otherwise from one release to the
next. Architecture: Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision
(2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu, scaled_dot_product_attention

HALF_CLAMP = torch.finfo(torch.float16).max - 1000  # large sums are kept off infinity


def encode(encoder: Any, features: Tensor, pause: Callable[[], None]) -> Tensor:
    """[1, bands, frames], at most those of 30 s, to [1, frames // 2, width].

    encoder: WhisperEncoder. pause: called between layers.
    """
    hidden = gelu(encoder.conv2(gelu(encoder.conv1(features)))).transpose(1, 2)
    hidden = hidden + encoder.embed_positions.weight[: hidden.shape[1]]
    for layer in encoder.layers:
        pause()
        normed = layer.self_attn_layer_norm(hidden)
        keys, values = _project(layer.self_attn, normed)
        hidden = hidden + _attend(layer.self_attn, normed, keys, values)
        hidden = hidden + _feed(layer, hidden)
        if hidden.dtype == torch.float16:
            hidden = hidden.clamp(-HALF_CLAMP, HALF_CLAMP)
    return encoder.layer_norm(hidden)


class Decoding:
    """The decoder over one encoded piece of sound, and its cache. decoder: WhisperDecoder.

    limit_tokens: how many may be fed in all.
    """

    def __init__(self, decoder: Any, encoded: Tensor, limit_tokens: int) -> None:
        self._decoder = decoder
        self._heard = [_project(layer.encoder_attn, encoded) for layer in decoder.layers]
        attention = decoder.layers[0].self_attn
        shape = (1, attention.num_heads, limit_tokens, attention.head_dim)
        self._said = [(encoded.new_empty(shape), encoded.new_empty(shape)) for _ in decoder.layers]
        self._length = 0

    def look(
        self, tokens: Sequence[int], heads: Sequence[tuple[int, int]], positions: int
    ) -> Tensor:
        """What each token looks at in the sound: [heads, tokens, positions], each sum is 1.

        To be called first. heads: (layer, head). positions: of the sound, from its beginning.
        """
        looks: dict[tuple[int, int], Tensor] = {}

        def watch(number: int, normed: Tensor) -> None:
            attention = self._decoder.layers[number].encoder_attn
            queries = _by_head(attention, attention.q_proj(normed))[0]
            keys = self._heard[number][0][0, :, :positions]
            for layer, head in heads:
                if layer == number:
                    scores = queries[head] @ keys[head].T * attention.head_dim**-0.5
                    looks[layer, head] = scores.float().softmax(-1)

        self.feed(tokens, watch)
        return torch.stack([looks[head] for head in heads])

    def feed(
        self, tokens: Sequence[int], watch: Callable[[int, Tensor], None] | None = None
    ) -> Tensor:
        """The states after the tokens: [tokens, width]. More than one only at the start.

        watch: told the number of each layer, and with what it asks the sound.
        """
        first, last = self._length, self._length + len(tokens)
        self._length = last
        device = self._decoder.embed_positions.weight.device
        hidden = self._decoder.embed_tokens(torch.tensor([list(tokens)], device=device))
        hidden = hidden + self._decoder.embed_positions.weight[first:last]
        layers = zip(self._decoder.layers, self._said, self._heard, strict=True)
        for number, (layer, said, heard) in enumerate(layers):
            normed = layer.self_attn_layer_norm(hidden)
            for cached, new in zip(said, _project(layer.self_attn, normed), strict=True):
                cached[:, :, first:last] = new
            keys, values = (cached[:, :, :last] for cached in said)
            is_causal = last - first > 1
            hidden = hidden + _attend(layer.self_attn, normed, keys, values, is_causal)
            normed = layer.encoder_attn_layer_norm(hidden)
            if watch is not None:
                watch(number, normed)
            hidden = hidden + _attend(layer.encoder_attn, normed, *heard)
            hidden = hidden + _feed(layer, hidden)
        return self._decoder.layer_norm(hidden)[0]


def _project(attention: Any, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values: [1, heads, positions, width of a head] each."""
    return (
        _by_head(attention, attention.k_proj(hidden)),
        _by_head(attention, attention.v_proj(hidden)),
    )


def _attend(
    attention: Any, hidden: Tensor, keys: Tensor, values: Tensor, is_causal: bool = False
) -> Tensor:
    queries = _by_head(attention, attention.q_proj(hidden))
    mixed = scaled_dot_product_attention(queries, keys, values, is_causal=is_causal)
    return attention.out_proj(mixed.transpose(1, 2).flatten(2))


def _feed(layer: Any, hidden: Tensor) -> Tensor:
    return layer.fc2(layer.activation_fn(layer.fc1(layer.final_layer_norm(hidden))))


def _by_head(attention: Any, hidden: Tensor) -> Tensor:
    return hidden.unflatten(2, (attention.num_heads, attention.head_dim)).transpose(1, 2)
