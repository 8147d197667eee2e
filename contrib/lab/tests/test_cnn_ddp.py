"""Run cnn-ddp in two processes, with the variables torchrun would set."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

EXPERIMENT = Path(__file__).resolve().parents[1] / "experiments" / "cnn-ddp"
HAVE_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "yaml"))


def start(output_dir, overrides, **env):
    return subprocess.Popen(
        [sys.executable, "-B", "train.py", "--config", "config.yaml", "--output-dir", output_dir,
         "--overrides-json", json.dumps(overrides)],
        cwd=EXPERIMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **env})


class CnnDdp(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.out = Path(directory.name)

    def run_pair(self, **overrides):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        processes = [
            start(self.out, overrides, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2",
                  MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            for rank in range(2)
        ]
        outputs = [process.communicate(timeout=120) for process in processes]
        self.assertEqual([process.returncode for process in processes], [0, 0], outputs)
        return outputs[0][0]

    @unittest.skipUnless(HAVE_TORCH, "no torch here")
    def test_two_processes_learn_and_continue(self):
        self.assertIn("2 × cpu", self.run_pair(epochs=2, backend="gloo"))
        self.assertIn("epochs 3 to 3", self.run_pair(epochs=3, backend="gloo"))
        metrics = [json.loads(line) for line in (self.out / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([m["epoch"] for m in metrics], [1, 2, 3])
        self.assertLess(metrics[-1]["loss"], metrics[0]["loss"] / 2)
        report = json.loads((self.out / "eval" / "report.json").read_text())
        self.assertGreater(report["accuracy"], 0.8)
        self.assertEqual(set(report["accuracy_by_class"]), {"circle", "square", "triangle"})

    @unittest.skipUnless(HAVE_TORCH, "no torch here")
    def test_bad_overrides_are_named(self):
        for overrides, want in (
            ({"learning_rate": 1}, "--overrides-json: unknown key learning_rate; known are epochs"),
            ({"epochs": 1.5}, "config: epochs: want int, found 1.5"),
        ):
            process = start(self.out, overrides)
            _, errors = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 1)
            self.assertIn(want, errors)

    @unittest.skipIf(HAVE_TORCH, "torch is here")
    def test_says_how_to_get_torch(self):
        process = start(self.out, {})
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 3)
        self.assertIn("pip install torch", errors)
        self.assertEqual(errors.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
