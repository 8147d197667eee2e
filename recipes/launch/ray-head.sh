# ---- the head, and the driver
(umask 077 && rm -f "$tp_seen" "$tp_seen.end" && set -C &&
  od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$tp_seen")
tp_version=$(ray --version 2>/dev/null) || tp_version="an unknown version"
echo "tp: $tp_version"
if [[ $tp_version =~ ([0-9]+)\.([0-9]+) ]] && ((BASH_REMATCH[1] * 1000 + BASH_REMATCH[2] < 2052)); then
  echo "tp: Ray before 2.52 has no authentication: whoever reaches these nodes can run code in this cluster"
fi
ray start --head --port="$tp_head_port" --dashboard-host=127.0.0.1 --dashboard-port="$((tp_head_port + 1))" \
  --ray-client-server-port="$((tp_head_port + 2))" "${tp_options[@]}" &
tp_ray=$!
tp_beside() { # COMMAND...: runs it as long as Ray lives, and gives its exit code
  local child watch rc=0
  "$@" &
  child=$!
  (
    while kill -0 "$tp_ray"; do sleep 1; done
    kill -TERM "$child"
  ) 2>/dev/null &
  watch=$!
  tp_await "$child" || rc=$?
  kill -TERM "$watch" 2>/dev/null || true
  return "$rc"
}
tp_ready() { # all nodes of all pools, with their GPUs
  # shellcheck disable=SC2317 # called by name
  exec python3 - "$RAY_ADDRESS" "$tp_timeout" "${tp_pools[@]}" <<'PY'
import os, sys, time
import ray
address, timeout, pools = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
def shape(pool):
    prefix = "TP_POOL_" + "".join(c if c.isalnum() else "_" for c in pool.upper())
    names, addresses = os.environ[prefix + "_NODES"].split(), os.environ[prefix + "_ADDRS"].split()
    return list(zip(names, addresses)), int(os.environ[prefix + "_GPUS_PER_NODE"])
began = time.monotonic()
while True:
    missing = []
    try:
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", namespace="tp")
        nodes = ray.nodes()
        for node in nodes:
            if not node["Alive"]:
                sys.exit(f"tp: the node {node['NodeManagerAddress']} left Ray while it was being started")
        for pool in pools:
            wanted, gpus = shape(pool)
            here = [n for n in nodes if "tp_pool_" + pool in n["Resources"]]
            for node in here:
                if node["Resources"].get("GPU", 0) != gpus:
                    sys.exit(f"tp: the node {node['NodeManagerAddress']} of pool {pool} has {node['Resources'].get('GPU', 0):g} GPUs in Ray, not {gpus}")
            if len(here) < len(wanted):
                seen = {n["NodeManagerAddress"] for n in here}
                names = " ".join(name for name, address_ in wanted if address_ not in seen)
                missing.append(f"{len(here)} of {len(wanted)} nodes of pool {pool}" + (f", not {names}" if names else ""))
    except Exception as e:
        missing.append(f"no answer at {address}: {e}")
    if not missing:
        break
    if time.monotonic() - began > timeout:
        sys.exit(f"tp: Ray is not complete after {timeout:.0f} s: " + "; ".join(missing))
    time.sleep(1)
print(f"tp: Ray is complete after {time.monotonic() - began:.0f} s: {len(nodes)} nodes, " + ", ".join(f"{k} {v:g}" for k, v in sorted(ray.cluster_resources().items()) if k in ("CPU", "GPU") or k.startswith("tp_pool_")), flush=True)
PY
}
tp_rc=0
if tp_reach && tp_beside tp_ready; then
  tp_beside "${tp_command[@]}" || tp_rc=$?
else
  tp_rc=70
fi
if ! kill -0 "$tp_ray" 2>/dev/null && [ -z "$tp_asked" ]; then
  tp_last
  echo "tp: Ray on the head, $tp_node, ended before the driver" >&2
  if [ "$tp_rc" -eq 0 ] || [ "$tp_rc" -eq 143 ]; then tp_rc=70; fi
fi
: >"$tp_seen.end"
tp_stop
exit "$tp_rc"
