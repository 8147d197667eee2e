"""What a role of a multi-pool job must know of the others: where they listen, and the token that opens the door.

tp describes the job to every process in the environment. For a role `rollout` on two nodes it says, among others,

    TP_ROLE_ROLLOUT_ADDRS="10.0.0.7 10.0.0.8"   one address per node
    TP_ROLE_ROLLOUT_PORT=24016                  the first of sixteen ports that are this role's on each of its nodes

and to each process who it is: TP_ROLE=rollout, TP_NODE_RANK=1.

Convention of this lab: node number r of a role listens on port TP_ROLE_<ROLE>_PORT + r. Nodes with addresses of their own
could all use the first port; on a one-machine test cluster, where each is 127.0.0.1, the sum keeps them apart.
"""

import os
import re
import secrets
import sys
import time

PORTS_PER_ROLE = 16


def env(name):
    """A variable that tp sets. Without it the script was not started by tp, and guessing would only hide that."""
    try:
        return os.environ[name]
    except KeyError:
        sys.exit(f"{name} is not set: tp sets it in a job; the lab's tests show how to run a role by hand")


def endpoints(role):
    """Where the role listens: (address, port) of each of its nodes."""
    prefix = "TP_ROLE_" + re.sub(r"[^A-Z0-9]", "_", role.upper())
    first_port = int(env(prefix + "_PORT"))
    # More than sixteen nodes have addresses of their own, so the ports may start over.
    return [(host, first_port + rank % PORTS_PER_ROLE) for rank, host in enumerate(env(prefix + "_ADDRS").split())]


def own_endpoint():
    """Where this process listens. The address is the pool's own, never 0.0.0.0: other networks need not see us."""
    return endpoints(env("TP_ROLE"))[int(env("TP_NODE_RANK"))]


def create_token(path):
    """Return the run's token, making it first if nobody has. Whoever loses the race uses the winner's."""
    draft = f"{path}.{secrets.token_hex(4)}"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(32))
    try:
        os.link(draft, path)  # all or nothing, on NFS too: a reader never finds half a token
    except FileExistsError:
        pass  # a restarted job finds the token of its first attempt
    finally:
        os.unlink(draft)
    return read_token(path)


def read_token(path):
    """Return the token, if it is ours and nobody else can read it."""
    with open(path) as file:
        info = os.fstat(file.fileno())
        if info.st_uid != os.getuid() or info.st_mode & 0o077:
            sys.exit(f"{path}: want a file of mode 0600 and our own, found mode {info.st_mode & 0o777:o}, uid {info.st_uid}")
        return file.read()


def wait_for_token(path, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            return read_token(path)
        except FileNotFoundError:
            time.sleep(0.2)
    sys.exit(f"{path}: no token after {seconds} s; the train role makes it when it starts")
