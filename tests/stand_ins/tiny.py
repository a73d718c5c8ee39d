"""What the scripts beside this one share: a tiny tokenizer, lively random weights, reference data.

Needs torch==2.13.0, transformers==4.57.6, llmexport==0.0.5, soundfile, and as2d's own requirements.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import soundfile
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import Qwen2TokenizerFast

from as2d_cli.domain.types import Request

DATA = Path(__file__).parents[1] / "data"
CLIP = DATA / "jfk.flac"
SECONDS = (1.0, 8.0, 10.0, 11.0, 17.52, 29.995, 30.0)
"""Lengths of audio that references are kept for: multiples of a frame and not, up to a whole window. Front
ends that count frames in different ways differ at these."""
ENCODED_S = 10.0
"""Of the audio whose embeddings are kept."""
TOKENS = 40
_VARIETY = 6
"""Least number of different tokens in a text."""
_SAID = slice(32, 91)
"""Ids of the tokens from A to z in a byte-level vocabulary."""
_TEXT = "the quick brown fox jumps over the lazy dog; transcribe, translate and answer in English. " * 3
_MERGES = 24
_QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def write_tokenizer(folder: Path, specials: Sequence[str], text: str = _TEXT) -> Qwen2TokenizerFast:
    """Write a byte-level BPE tokenizer of Qwen's kind, with `specials` behind its others.

    The fourth to sixth of these stand for sound, and for its beginning and end.
    """
    bpe = Tokenizer(models.BPE())
    bpe.normalizer = normalizers.NFC()
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_QWEN_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=256 + _MERGES, initial_alphabet=alphabet, show_progress=False)
    bpe.train_from_iterator([text], trainer)
    bpe.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in specials])
    fast = Qwen2TokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.model_input_names = ["input_ids", "attention_mask"]
    fast.save_pretrained(folder)
    for name in ("vocab.json", "merges.txt", "added_tokens.json"):  # the same once more
        (folder / name).unlink()
    for name, token in zip(("audio_token", "audio_bos_token", "audio_eos_token"), specials[3:6], strict=True):
        setattr(fast, name, token)  # where the processors look for them
    return fast


def enliven(model: torch.nn.Module, seed: int, spread: float) -> None:
    """Give random weights that make the text vary: small ones repeat one token for ever.

    They are representable in bfloat16, so that storing them as that or as float16 loses nothing.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        if (weight.dim() < 2 and "norm" in name) or name.endswith(("ln_post.weight", "ln_post.bias")):
            continue
        fan = weight[0].numel() if weight.dim() > 1 else 16
        values = torch.randn(weight.shape, generator=generator) * spread / fan**0.5
        if "embed_tokens" in name:
            values *= fan**0.5
        if "lm_head" in name:  # only letters and the like can be said: fewer near-ties
            values[_SAID.stop :] = values[: _SAID.start] = 0
        weight.data = values.bfloat16().float()


def clip(seconds: float) -> np.ndarray:
    """Return the beginning of the reference clip, over and over, float32 at 16 kHz."""
    samples, rate = soundfile.read(CLIP, dtype="float32")
    assert rate == 16000
    return np.tile(samples, 3)[: round(seconds * rate)]


def case(seconds: float, request: Request, prompt: list[int], tokens: list[int]) -> dict:
    """Return what PyTorch made of the beginning of the clip."""
    asked = {key: value for key, value in asdict(request).items() if value}
    return {"seconds": seconds, "request": asked, "prompt": prompt, "tokens": tokens}


def generate(model: torch.nn.Module, inputs: dict, ends: list[int]) -> tuple[list[int], float]:
    """Return the prompt with the greedy tokens after it, and how near a second best came to being chosen."""
    out = model.generate(
        **inputs,
        do_sample=False,
        max_new_tokens=TOKENS,
        eos_token_id=ends,
        pad_token_id=ends[-1],
        return_dict_in_generate=True,
        output_logits=True,
    )
    best_two = [torch.topk(step[0].float(), 2).values.tolist() for step in out.logits]
    return out.sequences[0].tolist(), min(best - second for best, second in best_two)


def lively(make: Callable[[int], tuple[list[dict], float]], seeds: range, least: float) -> int:
    """Return the first seed whose references vary, without near-ties (rounding decides these)."""
    for seed in seeds:
        cases, distance = make(seed)
        variety = min(len(set(case["tokens"])) for case in cases)
        print(f"seed {seed}: {variety} distinct of {TOKENS}, margin {distance:.3f}")
        if distance >= least and variety >= _VARIETY:
            return seed
    raise SystemExit("no seed will do")


def write_reference(
    folder: Path,
    cases: list[dict],
    hear: Callable[[float], dict],
    encode: Callable[[dict], torch.Tensor],
) -> None:
    """Write the cases, how many frames `hear` finds in each, the last of these, and embeddings of one.

    `hear` is the family's own processor: it returns features and their mask for so many seconds.
    """
    (folder / "reference.json").write_text(json.dumps(cases) + "\n")
    arrays = {}
    for seconds in SECONDS:
        features = frames(hear(seconds))
        arrays |= {f"frames {seconds}": np.int32(features.shape[1]), f"last {seconds}": features[:, -8:]}
    with torch.no_grad():
        arrays["embeddings"] = encode(hear(ENCODED_S)).reshape(-1, 64).numpy()
    kept = {name: array.astype(np.int32 if array.ndim == 0 else np.float16) for name, array in arrays.items()}
    np.savez_compressed(folder / "reference.npz", **kept)


def frames(heard: dict) -> np.ndarray:
    """Return the features that are not of padding, shape (mels, frames)."""
    count = int(heard["feature_attention_mask"].sum())
    return heard["input_features"][0][:, :count].numpy()
