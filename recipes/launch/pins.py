# Python reads this file (sitecustomize) when it starts, in the driver and in
# all of Ray's workers: placement groups whose name begins with one of
# $TP_RAY_PINS ("prefix=pool ...") are kept on the nodes of that pool.
import importlib.machinery
import importlib.util
import os
import sys
pins = sorted((p.partition("=")[::2] for p in os.environ.get("TP_RAY_PINS", "").split()), key=lambda p: -len(p[0]))
def pin(module):
    plain = module.placement_group
    def placement_group(bundles, strategy="PACK", name="", *args, **kwargs):
        for prefix, pool in pins:
            if name.startswith(prefix):
                bundles = [{**bundle, "tp_pool_" + pool: 0.001} for bundle in bundles]
                break
        return plain(bundles, strategy, name, *args, **kwargs)
    placement_group.__doc__ = plain.__doc__
    module.placement_group = placement_group
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "ray.util.placement_group":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None:
            plain = spec.loader.exec_module
            def exec_module(module):
                plain(module)
                pin(module)
            spec.loader.exec_module = exec_module
        return spec
if pins:
    sys.meta_path.insert(0, Finder)
# The file that this one stands in front of.
here = os.path.dirname(os.path.abspath(__file__))
spec = importlib.machinery.PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p or ".") != here])
if spec is not None:
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)
