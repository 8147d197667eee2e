"""Rewards of an experiment: one function per entry of reward_funcs."""


def short_answers(completions, **kwargs):
    """A number for each completion; the other columns of the data come in kwargs."""
    texts = [c if isinstance(c, str) else c[-1]["content"] for c in completions]
    return [1.0 / (1.0 + len(text) / 200) for text in texts]
