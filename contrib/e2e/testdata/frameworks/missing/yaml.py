"""PyYAML for flat files, where a world has none."""
import json, re


def _value(text):
    text = text.strip()
    if text.startswith("["):
        return [_value(v) for v in text[1:-1].split(",")]
    if re.fullmatch(r"[-+]?\d+|[-+]?\d+\.\d*([eE][-+]\d+)?", text) or text in ("true", "false", "null"):
        return json.loads(text)
    return text


def safe_load(f):
    lines = (line.partition("#")[0] for line in f)
    return {key.strip(): _value(value) for key, colon, value in (line.partition(":") for line in lines) if colon}
