#!/usr/bin/env bash
# Role rollout: draws samples from the policy that train sends. exec, so that SIGTERM reaches Python.
set -euo pipefail
exec python3 -u "$TP_EXP_DIR/rollout.py"
