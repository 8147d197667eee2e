"""The little of Ray's Python interface that asks a cluster what it has: names,
arguments and shapes as in Ray 2.44. It speaks with the stand-in `ray`."""
import json, os, socket

_address = None


def init(address=None, *, namespace=None, log_to_driver=True, logging_level="INFO", ignore_reinit_error=False):
    global _address
    address = address or os.environ.get("RAY_ADDRESS")
    if not address:
        raise ConnectionError("no address, and the stand-in starts no cluster of its own")
    if _address and not ignore_reinit_error:
        raise RuntimeError("Maybe you called ray.init twice by accident?")
    _ask(address)
    _address = address


def is_initialized():
    return _address is not None


def _ask(address):
    host, _, port = address.rpartition(":")
    token = os.environ.get("RAY_AUTH_TOKEN", "")
    if os.environ.get("RAY_AUTH_MODE") == "token" and not token:
        token = open(os.environ["RAY_AUTH_TOKEN_PATH"]).read().strip()
    with socket.create_connection((host.strip("[]"), int(port)), timeout=5) as c:
        c.sendall(json.dumps({"token": token}).encode() + b"\n")
        answer = json.loads(c.makefile().readline())
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["nodes"]


def nodes():
    return _ask(_address)


def cluster_resources():
    total = {}
    for node in nodes():
        for name, value in node["Resources"].items():
            total[name] = total.get(name, 0) + value
    return total
