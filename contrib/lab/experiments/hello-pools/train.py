"""The train role: GRPO on sums without carry, with samples from the rollout pool.

Each step: send the weights to every rollout node, have each draw groups for its share of the prompts, learn from all of
them. README.md explains the knobs, policy.py the task, grpo.py the mathematics.
"""

import http.client
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import fmean

sys.path.insert(0, os.environ.get("TP_CODE_DIR", "../.."))
from common.metrics import Metrics
from common.pools import create_token, endpoints, env
from grpo import EPOCHS, Adam, advantages, group_loss
from policy import ALL_PROMPTS, HIDDEN, Policy, reward

STEPS = int(os.environ.get("STEPS", 150))
GROUP_SIZE = int(os.environ.get("GROUP_SIZE", 32))
LR = float(os.environ.get("LR", 0.003))
KL_WEIGHT = float(os.environ.get("KL_WEIGHT", 0.3))
SEED = int(os.environ.get("SEED", 0))

START_SECONDS = 300  # until every rollout node listens: it may still be pulling an image
CALL_SECONDS = 60  # a call takes milliseconds; a node that is silent for so long is gone
CHECKPOINT_EVERY = 10


@dataclass
class Group:
    """The completions of one prompt, with what they are worth."""
    prompt: tuple
    completions: list
    log_probs: list
    rewards: list
    advantages: list


class RolloutNode:
    """One rollout server, over one connection that stays open."""

    def __init__(self, rank, host, port, token):
        self.name = f"rollout {rank} ({host}:{port})"
        self.connection = http.client.HTTPConnection(host, port, timeout=CALL_SECONDS)
        self.headers = {"Authorization": f"Bearer {token}"}

    def call(self, method, path, value=None):
        body = None if value is None else json.dumps(value)
        self.connection.request(method, path, body, self.headers)
        response = self.connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise http.client.HTTPException(f"{method} {path}: {response.status} {text.decode()}")
        return json.loads(text)

    def wait_until_up(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return self.call("GET", "/health")
            except OSError:
                self.connection.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def sample(self, step, rows, prompts):
        """Send the weights, then have the prompts completed. A prompt brings its own seed, so the samples are the same
        however many nodes share the work."""
        self.call("PUT", "/policy", {"version": step, "rows": rows})
        return self.call("POST", "/generate", {
            "version": step,
            "count": GROUP_SIZE,
            "prompts": prompts,
            "seeds": [f"{SEED}/{step}/{a}+{b}" for a, b in prompts],
        })["groups"]


class RolloutPool:
    """All rollout nodes; prompt number i goes to node i modulo their number."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.threads = ThreadPoolExecutor(len(nodes))

    def on_each(self, call):
        """Call every node at once. One that does not answer ends the training: a pool that shrinks in silence would
        only look slow."""
        futures = [self.threads.submit(call, i, node) for i, node in enumerate(self.nodes)]
        results = []
        for node, future in zip(self.nodes, futures):
            try:
                results.append(future.result())
            except (OSError, http.client.HTTPException) as err:
                fail(f"{node.name} does not answer: {type(err).__name__}: {err}; see its log")
        return results

    def wait_until_up(self):
        self.on_each(lambda _, node: node.wait_until_up())

    def sample(self, step, policy):
        shares = [ALL_PROMPTS[i::len(self.nodes)] for i in range(len(self.nodes))]
        answers = self.on_each(lambda i, node: node.sample(step, policy.rows, shares[i]))
        groups = []
        for share, answer in zip(shares, answers):
            for prompt, drawn in zip(share, answer):
                rewards = [reward(prompt, c) for c in drawn["completions"]]
                groups.append(Group(prompt, drawn["completions"], drawn["log_probs"], rewards, advantages(rewards)))
        return groups


def fail(message):
    print(f"train: {message}", file=sys.stderr, flush=True)
    os._exit(1)  # at once: an orderly exit would first wait for calls to nodes that are gone


def learn(policy, optimizer, reference, groups):
    """A few passes of gradient descent over one batch; return the loss and KL of the last."""
    for _ in range(EPOCHS):
        grads = [[0.0] * HIDDEN for _ in policy.rows]
        losses, kls = [], []
        for group in groups:
            hidden, log_probs = policy.forward(group.prompt)
            loss, d_logits, kl = group_loss(log_probs, reference[group.prompt], group, KL_WEIGHT)
            policy.backward(group.prompt, hidden, [d / len(groups) for d in d_logits], grads)
            losses.append(loss)
            kls.append(kl)
        optimizer.step(policy.rows, grads)
    return fmean(losses), fmean(kls)


def save(path, step, policy, optimizer):
    with open(path + ".tmp", "w") as file:
        json.dump({"step": step, "rows": policy.rows, "optimizer": vars(optimizer)}, file)
    os.replace(path + ".tmp", path)  # a job killed here keeps the former checkpoint


def load(path, policy, optimizer):
    """Return the step to continue after: 0 unless a former attempt of this run left a checkpoint."""
    try:
        with open(path) as file:
            state = json.load(file)
    except FileNotFoundError:
        return 0
    policy.rows = state["rows"]
    vars(optimizer).update(state["optimizer"], lr=LR)
    print(f"continues after step {state['step']}")
    return state["step"]


def main():
    if env("TP_NODE_RANK") != "0":
        print("one node is enough to learn to add; this one has nothing to do")
        return

    token = create_token(os.path.join(env("TP_RUN_DIR"), "rollout.token"))
    pool = RolloutPool([RolloutNode(i, host, port, token) for i, (host, port) in enumerate(endpoints("rollout"))])
    pool.wait_until_up()
    print(f"{STEPS} steps, {GROUP_SIZE} samples for each of {len(ALL_PROMPTS)} prompts, rollout nodes: {len(pool.nodes)}")

    policy = Policy.random(SEED)
    reference = {prompt: policy.forward(prompt)[1] for prompt in ALL_PROMPTS}
    optimizer = Adam(policy.rows, LR)
    checkpoint = os.path.join(env("TP_OUT_DIR"), "checkpoint.json")
    metrics = Metrics(env("TP_OUT_DIR"))

    for step in range(load(checkpoint, policy, optimizer) + 1, STEPS + 1):
        groups = pool.sample(step, policy)
        mean_reward = fmean(r for group in groups for r in group.rewards)
        loss, kl = learn(policy, optimizer, reference, groups)
        metrics.log(step=step, reward=round(mean_reward, 4), loss=round(loss, 4), kl=round(kl, 4))
        print(f"step {step:4}/{STEPS}  reward {mean_reward:.3f}  loss {loss:+.3f}  kl {kl:.3f}")
        if step % CHECKPOINT_EVERY == 0 or step == STEPS:
            save(checkpoint, step, policy, optimizer)

    print(f"done: {policy.accuracy():.0%} of all sums right")


if __name__ == "__main__":
    main()
