"""A stand-in for NeMo-RL's examples/run_grpo.py."""
import sys
import ray
import standin

ray.init()
standin.say("nemo", Config=open(sys.argv[sys.argv.index("--config") + 1]).read(), Nodes=ray.nodes())
