# The servers are asked over HTTP until each says that it is ready. One that
# dies ends the run by itself, with its role's name.
tp_servers=()
for tp_rank in "${!tp_server_addrs[@]}"; do
  tp_host=${tp_server_addrs[tp_rank]}
  if [[ $tp_host == *:* ]]; then tp_host="[$tp_host]"; fi
  tp_servers+=("http://$tp_host:$((tp_server_port + tp_rank))")
done
export TP_SERVERS="${tp_servers[*]}" TP_SERVER_HOST=${tp_server_addrs[0]} TP_SERVER_PORT=$tp_server_port TP_SERVER_GROUP_PORT=$((tp_server_port + 15))
python3 - "$tp_server" "$tp_health" "$tp_timeout" "${tp_servers[@]}" <<'PY'
import sys, time, urllib.request
role, path, timeout, left = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
began, why = time.monotonic(), {}
while left:
    for url in list(left):
        try:
            with direct.open(url + path, timeout=5) as answer:
                answer.read()
            print(f"tp: {role} at {url} is ready after {time.monotonic() - began:.0f} s", flush=True)
            left.remove(url)
        except Exception as e:
            why[url] = e
    if left and time.monotonic() - began > timeout:
        sys.exit(f"tp: {role} at {left[0]} is not ready after {timeout:.0f} s: {path} answers {why[left[0]]}; its own log is logs/{role}.node*.log")
    if left:
        time.sleep(1)
PY
