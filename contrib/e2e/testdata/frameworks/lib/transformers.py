"""HfArgumentParser.parse_dict: every key belongs to a class, or it is an error."""
import dataclasses


class HfArgumentParser:
    def __init__(self, classes):
        self.classes = classes

    def parse_dict(self, values):
        left, made = dict(values), []
        for c in self.classes:
            names = {f.name for f in dataclasses.fields(c)} if dataclasses.is_dataclass(c) else c.names
            made.append(c(**{name: left.pop(name) for name in list(left) if name in names}))
        if left:
            raise ValueError(f"Some keys are not used by the HfArgumentParser: {sorted(left)}")
        return made
