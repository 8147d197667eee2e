"""GRPO with TRL: replace what you like, keep the command line.

tp calls: train.py --config config.yaml --model M --train-data D [--validation-data D]
          [--train-split S] [--validation-split S] --output-dir DIR --overrides-json JSON
The configuration holds fields of GRPOConfig and ModelConfig, and reward_funcs. The overrides
are applied last: values that YAML readers disagree about, such as 1e-5, come there
too, so that what tp showed is what you get. A run that was interrupted goes on from
its newest complete checkpoint.
"""

import argparse
import importlib
import json
import os
import re
import sys
from dataclasses import dataclass, field

import yaml
from datasets import load_dataset, load_from_disk
from transformers import HfArgumentParser
from trl import GRPOConfig, GRPOTrainer, ModelConfig, get_peft_config, get_quantization_config


@dataclass
class Rewards:
    """Reward functions by their dotted names, such as reward.short_answers."""

    reward_funcs: list[str] = field(default_factory=list)


def load_rewards(names):
    sys.path.insert(0, os.getcwd())
    found = []
    for name in names:
        module, _, function = name.rpartition(".")
        found.append(getattr(importlib.import_module(module), function))
    return found


def read_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--train-data", required=True)
    parser.add_argument("--validation-data")
    parser.add_argument("--train-split", default="train")
    parser.add_argument("--validation-split")
    parser.add_argument("--output-dir", required=True)
    parser.add_argument("--overrides-json", default="{}")
    return parser.parse_args()


def read_data(where, split):
    """A file, a directory that save_to_disk wrote, or a dataset's name."""
    kind = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}.get(os.path.splitext(where)[1])
    if kind and os.path.isfile(where):
        return load_dataset(kind, data_files=where, split="train")
    if os.path.exists(os.path.join(where, "state.json")):
        return load_from_disk(where)
    if os.path.exists(os.path.join(where, "dataset_dict.json")):
        return load_from_disk(where)[split]
    return load_dataset(where, split=split)


def newest_checkpoint(directory):
    """trainer_state.json is among the last files of a checkpoint to be written."""
    found = []
    for name in os.listdir(directory) if os.path.isdir(directory) else []:
        step = re.fullmatch(r"checkpoint-(\d+)", name)
        if step and os.path.exists(os.path.join(directory, name, "trainer_state.json")):
            found.append((int(step[1]), os.path.join(directory, name)))
    return max(found)[1] if found else None


def main():
    args = read_args()
    with open(args.config, encoding="utf-8") as f:
        values = yaml.safe_load(f) or {}
    values.update(json.loads(args.overrides_json))
    values.update(output_dir=os.path.join(args.output_dir, "checkpoints"), model_name_or_path=args.model)
    config, model, rewards = HfArgumentParser((GRPOConfig, ModelConfig, Rewards)).parse_dict(values)
    model_kwargs = {"revision": model.model_revision, "attn_implementation": model.attn_implementation, "dtype": model.dtype}
    quantization = get_quantization_config(model)
    if quantization is not None:
        model_kwargs["quantization_config"] = quantization
    config.model_init_kwargs = model_kwargs

    trainer = GRPOTrainer(
        model=model.model_name_or_path,
        args=config,
        reward_funcs=load_rewards(rewards.reward_funcs),
        train_dataset=read_data(args.train_data, args.train_split),
        eval_dataset=read_data(args.validation_data, args.validation_split or "test") if args.validation_data else None,
        peft_config=get_peft_config(model),
    )
    trainer.train(resume_from_checkpoint=newest_checkpoint(config.output_dir))
    trainer.save_model(os.path.join(args.output_dir, "model"))


if __name__ == "__main__":
    main()
