"""GRPO — group relative policy optimisation (Shao et al., 2024, arXiv:2402.03300) — in plain Python.

For each prompt the rollout pool draws a *group* of completions. There is no value network: a completion is good if it
beats the mean of its own group,

    advantage = (reward − mean of the group) / (standard deviation of the group)

and the loss of a completion is PPO's clipped one plus a leash to the reference policy:

    ratio = π(completion) / π_old(completion)               π_old drew the samples
    loss  = −min(ratio · advantage, clip(ratio, 1−ε, 1+ε) · advantage) + β · KL(π ‖ π_ref)
"""

import math
from statistics import fmean, pstdev

CLIP = 0.2  # ε: beyond 1 ± ε a completion has had its say in this step
EPOCHS = 2  # passes over one batch; from the second on the ratio leaves 1 and the clip matters


def advantages(rewards):
    """Rewards of one group → how much better than the group each is. All equal: nothing to learn, all zero."""
    mean, deviation = fmean(rewards), pstdev(rewards)
    return [(r - mean) / (deviation + 1e-6) for r in rewards]


def group_loss(log_probs, reference, group, beta):
    """Loss of one group and its gradient by the logits, both averaged over the group; and the KL on its own.

    log_probs and reference hold the current and the reference policy's log-probability of every token.
    """
    probs = [math.exp(p) for p in log_probs]
    # The vocabulary has ten tokens, so KL is summed exactly; with 150,000 tokens one estimates it from the samples.
    kl = sum(p * (lp - lr) for p, lp, lr in zip(probs, log_probs, reference))
    loss = beta * kl
    d_logits = [beta * p * (lp - lr - kl) for p, lp, lr in zip(probs, log_probs, reference)]

    for completion, old_log_prob, advantage in zip(group.completions, group.log_probs, group.advantages):
        ratio = math.exp(log_probs[completion] - old_log_prob)
        clipped = min(max(ratio, 1 - CLIP), 1 + CLIP)
        loss -= min(ratio * advantage, clipped * advantage) / len(group.completions)
        if clipped * advantage < ratio * advantage:
            continue  # the clipped branch is the smaller one, and it is constant: no gradient
        # ∂ratio/∂logits = ratio · (onehot(completion) − probs)
        push = ratio * advantage / len(group.completions)
        d_logits = [d + push * p for d, p in zip(d_logits, probs)]
        d_logits[completion] -= push
    return loss, d_logits, kl


class Adam:
    """Adam (Kingma & Ba, 2015) over rows of floats."""

    def __init__(self, rows, lr):
        self.lr = lr
        self.time = 0
        self.mean = [[0.0] * len(row) for row in rows]
        self.square = [[0.0] * len(row) for row in rows]

    def step(self, rows, grads, b1=0.9, b2=0.99, eps=1e-8):
        self.time += 1
        fix1, fix2 = 1 - b1 ** self.time, 1 - b2 ** self.time  # the averages start at zero
        for i, grad in enumerate(grads):
            self.mean[i] = [b1 * m + (1 - b1) * g for m, g in zip(self.mean[i], grad)]
            self.square[i] = [b2 * s + (1 - b2) * g * g for s, g in zip(self.square[i], grad)]
            rows[i] = [
                w - self.lr * (m / fix1) / (math.sqrt(s / fix2) + eps)
                for w, m, s in zip(rows[i], self.mean[i], self.square[i])
            ]
