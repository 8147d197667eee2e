"""The reward of an experiment: OpenRLHF loads reward_func by reward.remote_url."""

import torch


def reward_func(queries, prompts, labels, **kwargs):
    """A number for each query, which is a prompt with its response."""
    answers = [query[len(prompt):] if query.startswith(prompt) else query for query, prompt in zip(queries, prompts)]
    rewards = torch.tensor([1.0 / (1.0 + len(answer) / 200) for answer in answers])
    return {"rewards": rewards, "scores": rewards, "extra_logs": {"answer_length": torch.tensor([float(len(a)) for a in answers]).mean()}}
