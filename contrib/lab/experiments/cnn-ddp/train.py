"""Train a small CNN on shapes with DistributedDataParallel, on GPUs where there are some and on CPUs where not.

tp calls every pytorch experiment the same way, once per process, under torchrun:

    train.py --config FILE --output-dir DIR --overrides-json JSON [--data-dir DIR]

Called without torchrun it trains alone. It leaves metrics.jsonl, checkpoints/last.pt and eval/report.json in the output
directory, and continues from the checkpoint when there is one: a restarted or requeued job loses one epoch at most.
"""

import argparse
import dataclasses
import json
import os
import sys
from pathlib import Path

try:
    import torch
    import yaml
    from torch import distributed as dist
    from torch import nn
    from torch.nn import functional as F
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler
except ImportError as err:
    print(f"train.py: {err}: pip install torch pyyaml, or apt-get install python3-torch python3-yaml, "
          "or give the job an image that has both", file=sys.stderr)
    sys.exit(3)

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import shapes
from common.metrics import Metrics


@dataclasses.dataclass(frozen=True)
class Config:
    """config.yaml, checked: it must name every key and no other."""
    epochs: int
    batch_size: int
    lr: float
    weight_decay: float
    hidden: int
    noise: float
    train_images: int
    test_images: int
    seed: int
    backend: str

    @classmethod
    def read(cls, file, overrides):
        values = {**yaml.safe_load(Path(file).read_text()), **overrides}
        types = {field.name: field.type for field in dataclasses.fields(cls)}
        for key in values:
            if key not in types:
                where = "--overrides-json" if key in overrides else file
                sys.exit(f"{where}: unknown key {key}; known are {', '.join(types)}")
        missing = [key for key in types if key not in values]
        if missing:
            sys.exit(f"{file}: {missing[0]} is missing")
        return cls(**{key: convert(key, value, types[key]) for key, value in values.items()})


def convert(key, value, kind):
    """YAML reads 3e-3 as text and 1 as an int; both are a fine float. But 2.5 is no number of epochs."""
    try:
        converted = kind(value)
        if isinstance(value, bool) or kind is int and converted != value:
            raise ValueError
        return converted
    except (TypeError, ValueError):
        sys.exit(f"config: {key}: want {kind.__name__}, found {value!r}")


class Net(nn.Sequential):
    """Two convolutions, each halving the image, then one linear layer: 1 × 16 × 16 → 2·hidden × 4 × 4 → classes."""

    def __init__(self, hidden):
        super().__init__(
            nn.Conv2d(1, hidden, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(hidden, 2 * hidden, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(2 * hidden * (shapes.SIZE // 4) ** 2, len(shapes.CLASSES)),
        )


def join_group(backend):
    """Meet the other processes and return this one's device. torchrun says where they meet, in the environment."""
    # CUDA_VISIBLE_DEVICES and Slurm's variables tell what was promised; only torch knows what works.
    cuda = torch.cuda.is_available()
    if backend == "nccl" and not cuda:
        sys.exit("config: backend: nccl needs CUDA, and torch sees none here; use gloo")
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    if not cuda:
        torch.set_num_threads(1)  # the processes of a node share its cores already
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(device)
    return device


def train_epoch(model, optimizer, loader, device):
    """One pass over this process's share; DDP averages the gradients of all. Return the mean loss of all."""
    model.train()
    total = torch.zeros(2, device=device)  # loss, images
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += torch.tensor([loss.item() * len(labels), len(labels)], device=device)
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


@torch.no_grad()
def evaluate(model, data, device):
    """Each process takes every n-th test image. Return the number of right ones and of all, per class, summed."""
    model.eval()
    images, labels = (t[dist.get_rank()::dist.get_world_size()].to(device) for t in data)
    right = model(images).argmax(1) == labels
    counts = torch.stack([
        torch.bincount(labels[right], minlength=len(shapes.CLASSES)),
        torch.bincount(labels, minlength=len(shapes.CLASSES)),
    ])
    dist.all_reduce(counts)
    return counts


def write_atomically(path, write):
    """A job killed while it writes must leave the former file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    write(draft)
    os.replace(draft, path)


def train(config, output_dir, data_dir):
    device = join_group(config.backend)
    rank, world = dist.get_rank(), dist.get_world_size()
    if config.batch_size % world:
        sys.exit(f"config: batch_size: {config.batch_size} cannot be shared by {world} processes")

    data = shapes.load(data_dir) if data_dir else {
        "train": shapes.draw(config.train_images, config.noise, config.seed),
        "test": shapes.draw(config.test_images, config.noise, config.seed + 1),
    }
    dataset = TensorDataset(*data["train"])
    sampler = DistributedSampler(dataset, seed=config.seed)
    loader = DataLoader(dataset, config.batch_size // world, sampler=sampler)

    torch.manual_seed(config.seed)
    model = DistributedDataParallel(Net(config.hidden).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, weight_decay=config.weight_decay)

    checkpoint = output_dir / "checkpoints" / "last.pt"
    done = 0
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=device)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["epoch"]
    if rank == 0:
        metrics = Metrics(output_dir)
        print(f"{world} × {device.type}, {len(dataset)} images, epochs {done + 1} to {config.epochs}", flush=True)

    for epoch in range(done + 1, config.epochs + 1):
        sampler.set_epoch(epoch)
        loss = train_epoch(model, optimizer, loader, device)
        right, count = evaluate(model, data["test"], device)
        accuracy = (right.sum() / count.sum()).item()
        if rank == 0:
            print(f"epoch {epoch}/{config.epochs}  loss {loss:.4f}  accuracy {accuracy:.3f}", flush=True)
            metrics.log(step=epoch, epoch=epoch, loss=round(loss, 4), accuracy=round(accuracy, 4))
            state = {"epoch": epoch, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            write_atomically(checkpoint, lambda path: torch.save(state, path))

    right, count = evaluate(model, data["test"], device)
    if rank == 0:
        report = {
            "epochs": config.epochs,
            "examples": int(count.sum()),
            "accuracy": round((right.sum() / count.sum()).item(), 4),
            "accuracy_by_class": {
                name: round((r / n).item(), 4) for name, r, n in zip(shapes.CLASSES, right, count)
            },
            "config": dataclasses.asdict(config),
        }
        text = json.dumps(report, indent=2) + "\n"
        write_atomically(output_dir / "eval" / "report.json", lambda path: path.write_text(text))
    dist.destroy_process_group()


def json_object(text):
    """A named type, so that argparse says "invalid json_object value" when it is not one."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", required=True, metavar="FILE")
    parser.add_argument("--output-dir", required=True, type=Path, metavar="DIR")
    parser.add_argument("--overrides-json", default={}, type=json_object, metavar="JSON",
                        help="config keys to replace, applied last")
    parser.add_argument("--data-dir", metavar="DIR", help="read shapes.pt there instead of drawing the images")
    args = parser.parse_args()
    args.output_dir.mkdir(parents=True, exist_ok=True)
    train(Config.read(args.config, args.overrides_json), args.output_dir, args.data_dir)


if __name__ == "__main__":
    main()
