"""Run hello-pools as tp would, with all nodes on this machine: python3 -m unittest discover tests"""

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import stat
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

LAB = Path(__file__).resolve().parents[1]
EXPERIMENT = LAB / "experiments" / "hello-pools"
PATIENCE = 60  # seconds, for what takes one: the machine may be busy


def free_ports(count):
    """The first of some free neighbours, below the range the kernel hands out to clients (32768 on)."""
    while True:
        first = random.randrange(20000, 32000)
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                return first
            except OSError:
                continue


class HelloPools(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.run_dir = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        (self.run_dir / "out").mkdir()
        self.port = free_ports(3)

    def start(self, role, rank=0, rollout_nodes=1, **env):
        """One role on one node, in just the environment that tp gives it."""
        process = subprocess.Popen(
            [EXPERIMENT / f"{role}.sh"], cwd=EXPERIMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={
                "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1",
                "TP_RUN_DIR": str(self.run_dir), "TP_OUT_DIR": str(self.run_dir / "out"),
                "TP_CODE_DIR": str(LAB), "TP_EXP_DIR": str(EXPERIMENT),
                "TP_ROLE": role, "TP_NODE_RANK": str(rank), "TP_NNODES": str(rollout_nodes),
                "TP_ROLE_ROLLOUT_ADDRS": " ".join(["127.0.0.1"] * rollout_nodes),
                "TP_ROLE_ROLLOUT_PORT": str(self.port),
                **env,
            })
        self.stack.callback(process.stdout.close)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def finish(self, process, want=0):
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, want, output)
        return output

    def metrics(self):
        return [json.loads(line) for line in (self.run_dir / "out" / "metrics.jsonl").read_text().splitlines()]

    def test_learns_with_two_rollout_nodes(self):
        rollouts = [self.start("rollout", rank, rollout_nodes=2) for rank in range(2)]
        self.finish(self.start("train", rollout_nodes=2, STEPS="60"))
        metrics = self.metrics()
        self.assertEqual([m["step"] for m in metrics], list(range(1, 61)))
        self.assertLess(metrics[0]["reward"], 0.2)
        self.assertGreater(metrics[-1]["reward"], 0.6)
        token = self.run_dir / "rollout.token"
        self.assertEqual(stat.S_IMODE(token.stat().st_mode), 0o600)
        for rollout in rollouts:  # both had work, and both end cleanly
            self.assertIsNone(rollout.poll())
            rollout.send_signal(signal.SIGTERM)
            self.assertIn("listens on 127.0.0.1", self.finish(rollout))

    def test_same_curve_however_many_nodes_and_restarts(self):
        for rank in range(3):
            self.start("rollout", rank, rollout_nodes=3)
        self.finish(self.start("train", rollout_nodes=3, STEPS="10"))
        self.finish(self.start("train", rollout_nodes=1, STEPS="20"))  # continues from the checkpoint
        restarted = [m["reward"] for m in self.metrics()]
        for file in (self.run_dir / "out").iterdir():
            file.unlink()
        self.finish(self.start("train", rollout_nodes=1, STEPS="20"))
        self.assertEqual([m["reward"] for m in self.metrics()], restarted)

    def test_dead_rollout_node_ends_training(self):
        self.start("rollout", 0, rollout_nodes=2)
        doomed = self.start("rollout", 1, rollout_nodes=2)
        train = self.start("train", rollout_nodes=2, STEPS="100000")
        while "step    3" not in train.stdout.readline():
            self.assertIsNone(train.poll())
        doomed.kill()
        start = time.monotonic()
        output = self.finish(train, want=1)
        self.assertIn(f"train: rollout 1 (127.0.0.1:{self.port + 1}) does not answer", output)
        self.assertLess(time.monotonic() - start, 10)

    def test_wrong_token_is_refused(self):
        token = self.run_dir / "rollout.token"
        token.touch(0o600)
        token.write_text("right")
        rollout = self.start("rollout")
        self.assertIn("listens", rollout.stdout.readline())
        for header, want in (({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": "Bearer right"}, 200)):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            connection.request("GET", "/health", headers=header)
            self.assertEqual(connection.getresponse().status, want, header)
            connection.close()

    def test_token_that_others_can_read_is_refused(self):
        token = self.run_dir / "rollout.token"
        token.write_text("for all")
        token.chmod(0o644)
        self.assertIn("want a file of mode 0600", self.finish(self.start("rollout"), want=1))

    def test_sigterm_before_the_token_exists_is_a_clean_end(self):
        rollout = self.start("rollout")
        self.wait_until_in_python(rollout)
        rollout.send_signal(signal.SIGTERM)
        self.finish(rollout)

    def wait_until_in_python(self, process):
        """Wait until the process handles SIGTERM: bit 14 of SigCgt, see proc(5)."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            status = Path(f"/proc/{process.pid}/status").read_text()
            caught = int(status.split("SigCgt:")[1].split()[0], 16)
            if "python" in status.split("\n")[0] and caught & 1 << signal.SIGTERM - 1:
                return
            time.sleep(0.05)
        self.fail("python did not start")

    def test_says_what_is_missing_outside_a_job(self):
        done = subprocess.run(["python3", "-B", "rollout.py"], cwd=EXPERIMENT, text=True, stderr=subprocess.PIPE,
                              env={"PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, 1)
        self.assertIn("TP_RUN_DIR is not set", done.stderr)


if __name__ == "__main__":
    unittest.main()
