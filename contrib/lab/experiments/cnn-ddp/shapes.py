"""Circles, squares and triangles: an image task that is drawn instead of downloaded.

    python3 shapes.py DIR      writes DIR/shapes.pt, for those who want to try data sets and volumes
"""

import sys
from pathlib import Path

import torch

CLASSES = ["circle", "square", "triangle"]
SIZE = 16  # pixels, each way
FILE = "shapes.pt"


def draw(count, noise, seed):
    """Return count images (count × 1 × SIZE × SIZE) with one noisy shape each, and its class. Same seed, same images."""
    rng = torch.Generator().manual_seed(seed)

    def uniform(low, high):
        return (low + (high - low) * torch.rand(count, generator=rng)).view(-1, 1, 1)

    labels = torch.randint(len(CLASSES), (count,), generator=rng)
    radius = uniform(3, 6)
    axis = torch.arange(SIZE, dtype=torch.float32)
    dx = axis.view(1, 1, -1) - uniform(6, SIZE - 7)
    dy = axis.view(1, -1, 1) - uniform(6, SIZE - 7)

    circle = dx ** 2 + dy ** 2 <= radius ** 2
    square = torch.maximum(dx.abs(), dy.abs()) <= 0.85 * radius
    triangle = (dy.abs() <= radius) & (2 * dx.abs() <= dy + radius)  # its tip points up, where dy is negative
    inside = torch.stack([circle, square, triangle])[labels, torch.arange(count)].float()
    images = inside + noise * torch.randn(inside.shape, generator=rng)
    return images.unsqueeze(1), labels


def load(directory):
    """Read what `python3 shapes.py DIR` wrote: {"train": (images, labels), "test": (images, labels)}."""
    return torch.load(Path(directory) / FILE)


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    torch.save({"train": draw(4000, 0.3, seed=0), "test": draw(1000, 0.3, seed=1)}, directory / FILE)
