# ---- a node that joins
tp_reach || exit 0
# The head has written this before it took connections; a file of another
# client of a network file system may take a minute to be seen.
tp_until=$((SECONDS + 90))
until [ -s "$tp_seen" ]; do
  if [ -n "$tp_asked" ]; then exit 0; fi
  if [ "$SECONDS" -ge "$tp_until" ]; then tp_die "$tp_node does not see $tp_seen, which the head wrote: run_root must be a directory that all nodes share"; fi
  ls "$TP_RUN_DIR" >/dev/null
  sleep 0.5
done
ray start --address="$tp_head:$tp_head_port" "${tp_options[@]}" &
tp_ray=$! tp_rc=0
tp_await "$tp_ray" || tp_rc=$?
# A node's Ray ends when its head does. That is for the head to report, and then
# this node is asked to stop. A head that goes may answer for a moment.
for ((tp_i = 0; tp_i < 120; tp_i++)); do
  if [ -n "$tp_asked" ] || { ((tp_i > 4)) && tp_open && [ ! -e "$tp_seen.end" ]; }; then break; fi
  sleep 0.5
done
if [ -n "$tp_asked" ]; then
  tp_stop
  exit 0
fi
tp_last
tp_stop
tp_die "Ray on $tp_node (pool $TP_POOL) ended with exit code $tp_rc"
