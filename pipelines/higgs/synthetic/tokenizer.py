"""A tokenizer of the published kind (byte-level BPE with Qwen's splitting) for synthetic models."""

from __future__ import annotations

from collections.abc import Mapping

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from pipelines.higgs.text.vocabulary import SPECIAL_IDS

# Qwen's: words with what clings to them, digits one by one, signs, line ends, spaces.
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Words that are one token where the vocabulary has room, so that texts are about as long in tokens
# as with a trained tokenizer.
_WORDS = (
    "the of and to in is that it was for on are with as his they be at one have this from or had "
    "by hot but some what there we can out other were all your when up use word how said an each "
    "she which do their time if will way about many then them would write like so these her long "
    "make thing see him two has look more day could go come did my sound no most number who over "
    "know water than call first people may down side been now find any new work part take get "
    "place made live where after back little only round man year came show every good me give our "
    "under name very through just form much great think say help low line before turn cause same "
    "mean differ move right boy old too does tell sentence set three want air well also play small "
    "end put home read hand port large spell add even land here must big high such follow act why "
    "ask men change went light kind off need house picture try us again animal point mother world "
    "near build self earth father head stand own page should country found answer school study "
    "still learn plant cover food sun four thought let keep eye never last door between city tree "
    "cross since hard start might story saw far sea draw left late run while close night real "
    "life few stop open seem together next white children begin got walk example ease paper often "
    "always music those both mark book letter until mile river car feet care second group carry "
    "took rain eat room friend began idea fish mountain north once base hear horse cut sure watch"
).split()


def special_ids(vocabulary: int) -> Mapping[str, int]:
    """The special tokens of a model with so many: at their published ids, or after the bytes.

    Raises ValueError where the vocabulary is too small for them.
    """
    if vocabulary > max(SPECIAL_IDS.values()):
        return SPECIAL_IDS
    first = len(pre_tokenizers.ByteLevel.alphabet())
    if vocabulary < first + len(SPECIAL_IDS):
        raise ValueError(
            f"{vocabulary} tokens, but the bytes and the special tokens are "
            f"{first + len(SPECIAL_IDS)}"
        )
    return {token: first + place for place, token in enumerate(SPECIAL_IDS)}


def synthetic_tokenizer(specials: Mapping[str, int]) -> Tokenizer:
    """All bytes, some words, then unused entries up to the special tokens.

    specials: ids that follow one another, the first of them the number of ordinary tokens.
    """
    ordinary = min(specials.values())
    vocabulary = {sign: place for place, sign in enumerate(_alphabet())}
    merges: list[tuple[str, str]] = []
    for word in _WORDS:
        _add_word(f"Ġ{word}", ordinary, vocabulary, merges)
    for place in range(len(vocabulary), ordinary):
        vocabulary[f"unused {place}"] = place  # no sign of the alphabet is a space: never made
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.normalizer = normalizers.NFC()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(  # pyright: ignore[reportAttributeAccessIssue]
        [
            pre_tokenizers.Split(Regex(_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    in_order = sorted(specials, key=lambda token: specials[token])
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in in_order]
    )
    return tokenizer


def _alphabet() -> list[str]:
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def _add_word(
    word: str, limit: int, vocabulary: dict[str, int], merges: list[tuple[str, str]]
) -> None:
    """Make the word one token, sign after sign; without effect where there is no more room."""
    steps = [(word[:end], word[end], word[: end + 1]) for end in range(1, len(word))]
    new = [(left, right) for left, right, made in steps if made not in vocabulary]
    if len(vocabulary) + len(new) > limit:
        return
    for left, right in new:
        vocabulary[left + right] = len(vocabulary)
        merges.append((left, right))
