"""The rollout role: an HTTP server that holds a policy and draws completions from it.

    PUT  /policy    {"version": 7, "rows": [[…], …]}                     take the weights of training step 7
    POST /generate  {"version": 7, "count": 32, "prompts": [[a, b], …], "seeds": [text, …]}
                    → {"groups": [{"completions": […], "log_probs": […]}, …]}, one group per prompt
    GET  /health    → {"version": 7}

It stands for the vLLM or SGLang server of a real job: same division of work, same weight update at each step. Every
request carries the run's token, because the compute network is open to all users of the cluster.
"""

import hmac
import json
import os
import signal
import socketserver
import sys
from http.server import BaseHTTPRequestHandler

sys.path.insert(0, os.environ.get("TP_CODE_DIR", "../.."))
from common.pools import env, own_endpoint, wait_for_token
from policy import Policy

TOKEN_SECONDS = 300  # the train node may still be pulling an image


class Refused(Exception):
    def __init__(self, status, reason):
        self.status, self.reason = status, reason


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True  # an open connection must not keep a stopped server alive
    allow_reuse_address = True  # a restarted job gets its port back at once

    def __init__(self, endpoint, token):
        super().__init__(endpoint, Handler)
        self.token = token
        self.version, self.policy = None, None

    def health(self, _):
        return {"version": self.version}

    def put_policy(self, request):
        self.version, self.policy = request["version"], Policy(request["rows"])
        return {"version": self.version}

    def generate(self, request):
        if request["version"] != self.version:  # samples of another policy would bias the ratio in silence
            raise Refused(409, f"asked for policy {request['version']}, have {self.version}")
        groups = []
        for prompt, seed in zip(request["prompts"], request["seeds"]):
            completions, log_probs = self.policy.sample(prompt, request["count"], seed)
            groups.append({"completions": completions, "log_probs": log_probs})
        return {"groups": groups}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keep the connection: a step makes two requests
    disable_nagle_algorithm = True  # header and body are two writes; Nagle would wait 40 ms between them
    routes = {
        ("GET", "/health"): Server.health,
        ("PUT", "/policy"): Server.put_policy,
        ("POST", "/generate"): Server.generate,
    }

    def answer(self):
        try:
            self.check_token()
            route = self.routes.get((self.command, self.path))
            if route is None:
                raise Refused(404, f"no {self.command} {self.path} here")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.reply(200, route(self.server, json.loads(body or "{}")))
        except Refused as refused:
            self.close_connection = True  # its body may be unread
            self.reply(refused.status, {"error": refused.reason})

    do_GET = do_PUT = do_POST = answer

    def check_token(self):
        given = self.headers.get("Authorization", "").encode()
        wanted = f"Bearer {self.server.token}".encode()
        if not hmac.compare_digest(given, wanted):  # takes equally long wherever they differ
            raise Refused(401, "this server belongs to another run: wrong token")

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code="-", size="-"):
        if code != 200:  # two lines per step would bury what matters
            super().log_request(code, size)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # how tp ends a role once the driver is done: no failure
    token = wait_for_token(os.path.join(env("TP_RUN_DIR"), "rollout.token"), TOKEN_SECONDS)
    host, port = own_endpoint()
    try:
        server = Server((host, port), token)
    except OSError as err:
        sys.exit(f"rollout {env('TP_NODE_RANK')}: cannot listen on {host}:{port}: {err.strerror}")
    print(f"rollout {env('TP_NODE_RANK')} of {env('TP_NNODES')} listens on {host}:{port}")
    with server:
        server.serve_forever()


if __name__ == "__main__":
    main()
