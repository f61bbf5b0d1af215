"""Name the class of feature vectors, or "unknown". Needs numpy and onnxruntime: python predict_onnx.py vectors.npy"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

HERE = Path(__file__).parent
MODEL = json.loads((HERE / "model.json").read_text(encoding="utf-8"))


def score(logits: np.ndarray) -> float:
    """The confidence that is compared with the threshold: softmax at the temperature of the model."""
    return float(1 / np.exp((logits.astype(np.float64) - logits.max()) / MODEL["unknown"]["temperature"]).sum())


def shown(name: str) -> str:
    """A class that is called "unknown" is told from the answer "unknown"."""
    return f"{name} (a class)" if name == "unknown" else name


def main(file: str) -> None:
    vectors = np.load(file, allow_pickle=False).astype(np.float32)  # (N,D)
    session = onnxruntime.InferenceSession(str(HERE / "model.onnx"), providers=["CPUExecutionProvider"])
    inputs = vectors / np.float32(MODEL["preprocessing"]["scale"])
    logits, shares, _ = session.run(None, {"inputs": inputs})
    known = np.array([name not in MODEL["open_classes"] for name in MODEL["classes"]])
    threshold = MODEL["unknown"]["threshold"]
    for row, (values, share) in enumerate(zip(logits, shares, strict=True)):
        unknown = threshold is not None and score(values[known]) < threshold
        label = "unknown" if unknown else shown(MODEL["classes"][share.argmax()])
        print(row, label, f"{share.max():.4f}", sep="\t")


if __name__ == "__main__":
    main(sys.argv[1])
