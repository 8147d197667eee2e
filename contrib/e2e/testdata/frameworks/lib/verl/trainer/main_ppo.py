"""A stand-in for verl.trainer.main_ppo: it joins Ray and asks for placement
groups by the names of RayResourcePool in verl 0.9 (single_controller/ray/base.py:
<prefix>verl_group_<counts>:<index>)."""
import ray
from ray.util.placement_group import placement_group
import standin

ray.init()
asked = {}
for prefix in ("global_pool", "rollout_pool_0", "other"):
    group = placement_group([{"CPU": 1, "GPU": 1}], strategy="STRICT_PACK", name=prefix + "verl_group_1:0")
    asked[prefix] = group.bundle_specs
standin.say("verl", Nodes=ray.nodes(), Bundles=asked)
