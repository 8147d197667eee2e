"""The policy: a network small enough to read, with its gradient written by hand.

The task is a sum without carry. A prompt is two digits (a, b); the right completion is one digit, (a + b) % 10:

    prompt (7, 5)  →  completion 2  →  reward 1
    prompt (7, 5)  →  completion 9  →  reward 0

A language model maps a prompt to logits over its vocabulary; so does this one, with ten tokens and one hidden layer:

    hidden = tanh(A[a] + B[b])              embed both digits, add, squash
    logits = [OUT[k] · hidden  for k in 0..9]

A, B and OUT are tables of ten rows each. They lie in one list of thirty rows, so that an optimiser, a checkpoint or an
HTTP request can treat a policy as "rows of floats" and need not know which is which.
"""

import math
import random
from operator import mul

DIGITS = 10
HIDDEN = 96  # wide enough that learning one sum hardly disturbs another
ALL_PROMPTS = [(a, b) for a in range(DIGITS) for b in range(DIGITS)]


def reward(prompt, completion):
    """The verifier: 1 for the right digit, else 0."""
    a, b = prompt
    return float(completion == (a + b) % DIGITS)


class Policy:
    def __init__(self, rows):
        self.rows = rows

    @classmethod
    def random(cls, seed):
        """Random embeddings, far apart so that prompts differ; OUT is zero, so at first every digit is equally likely."""
        rng = random.Random(f"{seed}/weights")
        embeddings = [[rng.gauss(0, 2) for _ in range(HIDDEN)] for _ in range(2 * DIGITS)]
        return cls(embeddings + [[0.0] * HIDDEN for _ in range(DIGITS)])

    def forward(self, prompt):
        """Return the hidden layer (backward needs it) and the log-probability of each digit."""
        a, b = prompt
        hidden = [math.tanh(x + y) for x, y in zip(self.rows[a], self.rows[DIGITS + b])]
        logits = [sum(map(mul, row, hidden)) for row in self.rows[2 * DIGITS:]]
        top = max(logits)
        log_total = top + math.log(sum(math.exp(z - top) for z in logits))
        return hidden, [z - log_total for z in logits]

    def backward(self, prompt, hidden, d_logits, grads):
        """Add to grads (rows shaped like self.rows) what d_logits = ∂loss/∂logits means for every weight."""
        a, b = prompt
        d_hidden = [0.0] * HIDDEN
        for k, d in enumerate(d_logits, start=2 * DIGITS):
            grads[k] = [g + d * h for g, h in zip(grads[k], hidden)]
            d_hidden = [s + d * w for s, w in zip(d_hidden, self.rows[k])]
        d_inner = [d * (1 - h * h) for d, h in zip(d_hidden, hidden)]  # tanh' = 1 - tanh²
        for row in (a, DIGITS + b):
            grads[row] = [g + d for g, d in zip(grads[row], d_inner)]

    def sample(self, prompt, count, seed):
        """Draw count completions; return them and the log-probability of each."""
        _, log_probs = self.forward(prompt)
        rng = random.Random(seed)
        completions = rng.choices(range(DIGITS), [math.exp(p) for p in log_probs], k=count)
        return completions, [log_probs[c] for c in completions]

    def accuracy(self):
        """The share of all prompts whose most likely completion is right."""
        def best(prompt):
            _, log_probs = self.forward(prompt)
            return log_probs.index(max(log_probs))
        return sum(reward(p, best(p)) for p in ALL_PROMPTS) / len(ALL_PROMPTS)
