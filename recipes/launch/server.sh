# A server of the driver: one per node, on the address that the others use and
# not on all of them, since whoever reaches it may use it.
if [ -n "$tp_single" ] && [ "$TP_NNODES" -gt 1 ]; then
  echo "tp: $TP_ROLE is one server on one node, and its pool $TP_POOL has $TP_NNODES" >&2
  exit 64
fi
export TP_SERVER_HOST=${tp_server_addrs[TP_NODE_RANK]} TP_SERVER_PORT=$((tp_server_port + TP_NODE_RANK))
