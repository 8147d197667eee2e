"""A linear model on random data: replace it, keep the command line.

tp calls: train.py --config config.yaml --output-dir DIR --overrides-json JSON
The overrides are {"key": value}; a key with dots names a nested value. They
are applied last. Values that YAML readers disagree about, such as 1e-3, come
there too, so that what tp showed is what you get.
"""

import argparse
import json
import os

import torch
import torch.distributed as dist
import yaml


def load_config(path, overrides):
    with open(path, encoding="utf-8") as f:
        config = yaml.safe_load(f) or {}
    for key, value in json.loads(overrides).items():
        at = config
        *parents, leaf = key.split(".")
        for parent in parents:
            at = at[parent]
        at[leaf] = value
    return config


def latest_checkpoint(directory):
    path = os.path.join(directory, "latest.pt")
    return torch.load(path, map_location="cpu") if os.path.exists(path) else None


def save_checkpoint(directory, state):
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "latest.pt")
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)  # a job that is killed here keeps the old one


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--output-dir", required=True)
    parser.add_argument("--overrides-json", default="{}")
    args = parser.parse_args()
    config = load_config(args.config, args.overrides_json)

    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(config["seed"] + rank)

    model = torch.nn.Linear(32, 1).to(device)
    checkpoints = os.path.join(args.output_dir, "checkpoints")
    first, state = 0, latest_checkpoint(checkpoints)
    if state:
        model.load_state_dict(state["model"])
        first = state["step"] + 1
    ddp = torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=config["learning_rate"])
    for step in range(first, config["steps"]):
        x = torch.randn(config["batch_size"], 32, device=device)
        loss = torch.nn.functional.mse_loss(ddp(x), x.sum(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and (step + 1) % 10 == 0:
            print(json.dumps({"step": step, "train/loss": loss.item()}), flush=True)
            save_checkpoint(checkpoints, {"model": model.state_dict(), "step": step})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
