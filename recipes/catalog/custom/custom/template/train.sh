#!/usr/bin/env bash
# Runs on each node of the train pool, in this directory. The run ends when
# this script ends, with its exit code. Files written to "$TP_OUT_DIR" stay.
set -euo pipefail

echo "node $(hostname) of $TP_NNODES, run $TP_RUN_ID, output in $TP_OUT_DIR"
