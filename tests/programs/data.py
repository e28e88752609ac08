"""Tiny data in the formats that the programs read, so that nothing is downloaded. Each function fills one folder."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy


def mnist(root: Path, train: int = 1000, test: int = 200) -> None:
    """Write `root`/MNIST/raw as torchvision's MNIST reads it: images of bright squares whose place depends on the label."""
    raw = root / "MNIST" / "raw"
    raw.mkdir(parents=True)
    random = numpy.random.default_rng(5)
    for prefix, count in (("train", train), ("t10k", test)):
        labels = random.integers(0, 10, count, dtype=numpy.uint8)
        images = random.integers(0, 60, (count, 28, 28), dtype=numpy.uint8)
        for image, label in zip(images, labels, strict=True):
            row, column = divmod(int(label), 4)
            image[2 + 8 * row : 10 + 8 * row, 1 + 7 * column : 8 + 7 * column] += 180
        head = struct.pack(">iiii", 0x803, count, 28, 28)
        (raw / f"{prefix}-images-idx3-ubyte").write_bytes(head + images.tobytes())
        (raw / f"{prefix}-labels-idx1-ubyte").write_bytes(struct.pack(">ii", 0x801, count) + labels.tobytes())


def corpus(folder: Path, words: int = 3000) -> None:
    """Write train.txt, valid.txt and test.txt: sentences in which each word depends on the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(6)
    names = [f"word{i}" for i in range(80)]
    for name, count in (("train", words), ("valid", words // 5), ("test", words // 5)):
        word, lines, line = 0, [], []
        for _ in range(count):
            word = int(3 * word + random.integers(0, 7)) % len(names)
            line.append(names[word])
            if len(line) == 12:
                lines.append(" ".join(line))
                line = []
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


def cora(folder: Path, papers: int = 300, features: int = 60) -> None:
    """Write cora.content and cora.cites: papers of seven classes that mostly cite papers of their class."""
    folder.mkdir(parents=True)
    random = numpy.random.default_rng(7)
    classes = [f"Class_{i}" for i in range(7)]
    label = random.integers(0, 7, papers)
    with (folder / "cora.content").open("w") as stream:
        for paper in range(papers):
            bits = (
                random.random(features) < 0.05 + 0.3 * (numpy.arange(features) % 7 == label[paper])
            ).astype(int)
            stream.write("\t".join([str(1000 + paper), *map(str, bits), classes[label[paper]]]) + "\n")
    with (folder / "cora.cites").open("w") as stream:
        for paper in range(papers):
            same = numpy.flatnonzero(label == label[paper])
            for other in random.choice(same, min(4, len(same)), replace=False):
                stream.write(f"{1000 + other}\t{1000 + paper}\n")


def pictures(folder: Path, counts: dict[str, int], size: int = 96) -> None:
    """Write `folder`/NAME/N.png for each name and count: smooth colour patterns."""
    from PIL import Image

    random = numpy.random.default_rng(8)
    y, x = numpy.mgrid[0:size, 0:size] / size
    for name, count in counts.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            waves = [numpy.sin(6 * (a * x + b * y + c)) for a, b, c in random.random((3, 3))]
            pixels = (numpy.stack(waves, -1) * 100 + 128).astype(numpy.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")


def tokens(folder: Path, vocabulary: int = 65, count: int = 4000) -> None:
    """Write train.bin and val.bin of uint16 tokens and meta.pkl, as nanoGPT's character data sets have them."""
    import pickle

    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(9)
    for name in ("train", "val"):
        steps = random.integers(0, 5, count).cumsum()
        (folder / f"{name}.bin").write_bytes((steps % vocabulary).astype(numpy.uint16).tobytes())
    names = [chr(32 + i) for i in range(vocabulary)]
    meta = {
        "vocab_size": vocabulary,
        "itos": dict(enumerate(names)),
        "stoi": {c: i for i, c in enumerate(names)},
    }
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


def token_shard(file: Path, vocabulary: int = 50000, count: int = 500) -> None:
    """Write a file of uint16 tokens with the header of llm.c: 256 int32, of which the first are magic, version and count."""
    file.parent.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(5)
    header = numpy.zeros(256, numpy.int32)
    header[:3] = 20240520, 1, count
    tokens = random.integers(0, vocabulary, count).astype(numpy.uint16)
    file.write_bytes(header.tobytes() + tokens.tobytes())
