"""Placement groups as far as their bundles go: no resources are taken."""


class PlacementGroup:
    def __init__(self, bundles):
        self.bundle_specs = bundles


def placement_group(bundles, strategy="PACK", name="", lifetime=None, _soft_target_node_id=None, bundle_label_selector=None):
    return PlacementGroup(bundles)
