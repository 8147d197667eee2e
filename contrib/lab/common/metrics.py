"""Metrics as JSON lines: one object per line, appended and flushed, so a follower never sees half a step."""

import json
import os
import time


class Metrics:
    """A step appears twice if a restarted job repeats it; the later line counts."""

    def __init__(self, output_dir):
        self.file = open(os.path.join(output_dir, "metrics.jsonl"), "a", encoding="utf-8")

    def log(self, **values):
        line = json.dumps({"time": round(time.time(), 3), **values})
        self.file.write(line + "\n")
        self.file.flush()
