"""Name the class of feature vectors, or "unknown". Needs numpy and onnxruntime: python predict_onnx.py vectors.npy"""

import io
import json
import sys
import unicodedata
from pathlib import Path

import numpy as np
import onnxruntime

HERE = Path(__file__).parent
MODEL = json.loads((HERE / "model.json").read_text(encoding="utf-8"))
REORDERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def score(logits: np.ndarray) -> float:
    """The confidence that is compared with the threshold: softmax at the temperature of the model."""
    return float(1 / np.exp((logits.astype(np.float64) - logits.max()) / MODEL["unknown"]["temperature"]).sum())


def inert(text: str) -> str:
    """Control characters spelled out, and marks that reorder a line: a name must not give commands to a terminal."""
    commands = [c for c in text if unicodedata.category(c) in ("Cc", "Zl", "Zp") or c in REORDERING]
    return text.translate({ord(c): c.encode("unicode_escape").decode() for c in commands})


def shown(name: str) -> str:
    """A class that is called "unknown" is told from the answer "unknown"."""
    return f"{name} (a class)" if name == "unknown" else inert(name)


def read_vectors(file: str) -> np.ndarray:
    """(N,D) finite numbers, or the end of the program with a sentence."""
    width = MODEL["preprocessing"]["input_dim"]
    try:
        vectors: np.ndarray = np.load(file, allow_pickle=False).astype(np.float32)
    except (OSError, ValueError, AttributeError) as error:  # AttributeError: an archive .npz
        sys.exit(inert(f"Expected '{file}' to be a file .npy of numbers (N,{width}), but got: {error}"))
    if vectors.ndim != 2 or vectors.shape[1] != width:
        sys.exit(f"Expected vectors (N,{width}), but got the shape {vectors.shape}. For one vector: vector[None]")
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(wrong):
        sys.exit(f"Expected finite numbers, but got NaN or infinity in the rows {wrong[:5].tolist()}.")
    return vectors


def main(file: str) -> None:
    session = onnxruntime.InferenceSession(str(HERE / "model.onnx"), providers=["CPUExecutionProvider"])
    inputs = read_vectors(file) / np.float32(MODEL["preprocessing"]["scale"])
    logits, shares, _ = session.run(None, {"inputs": inputs})
    known = np.array([name not in MODEL["open_classes"] for name in MODEL["classes"]])
    wrong = np.flatnonzero(~np.isfinite(logits[:, known].max(axis=1)))
    if len(wrong):
        sys.exit(f"Expected finite logits, but the model computes NaN or infinity in the rows {wrong[:5].tolist()}.")
    threshold = MODEL["unknown"]["threshold"]
    for row, (values, share) in enumerate(zip(logits, shares, strict=True)):
        unknown = threshold is not None and not score(values[known]) >= threshold
        label = "unknown" if unknown else shown(MODEL["classes"][share.argmax()])
        print(row, label, f"{share.max():.4f}", sep="\t")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python predict_onnx.py vectors.npy")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names that the terminal cannot show
    main(sys.argv[1])
