"""What a stand-in for a framework saw, as a JSON file in the run's out/."""
import json, os, sys


def say(name, **more):
    path = f"{os.environ['TP_OUT_DIR']}/{name}.json"
    with open(path + ".tmp", "w") as f:
        json.dump({"Argv": sys.argv, "Dir": os.getcwd(), "Env": dict(os.environ), **more}, f)
    os.rename(path + ".tmp", path)


def options(words, known):
    """The values of --name VALUE and --name=VALUE, up to the first other word;
    unknown names end the program as argparse does."""
    given, words = {}, list(words)
    while words and words[0].startswith("--"):
        name, eq, value = words.pop(0).partition("=")
        if name not in known:
            print(f"error: unrecognized arguments: {name}", file=sys.stderr)
            sys.exit(2)
        given[name] = True if known[name] is bool else known[name](value if eq else words.pop(0))
    return given, words


def processes(count, nodes, node, command):
    """One process per local rank, as elastic launchers start them."""
    import subprocess
    local = count // nodes
    started = [
        subprocess.Popen(command, env={**os.environ, "LOCAL_RANK": str(i), "RANK": str(node * local + i), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(local)})
        for i in range(local)
    ]
    return max([p.wait() for p in started])
