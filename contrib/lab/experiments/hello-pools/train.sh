#!/usr/bin/env bash
# Role train: learns. It drives the job, which ends when this ends.
set -euo pipefail
exec python3 -u "$TP_EXP_DIR/train.py"
