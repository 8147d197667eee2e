# One node of a Ray cluster that belongs to this run; the first node of the
# driver's pool is the head and runs the driver. A node that fails ends the run.
tp_die() {
  printf 'tp: %s\n' "$*" >&2
  exit 70
}
tp_life=$TP_ATTEMPT.$TP_RESTART${SLURM_ARRAY_TASK_ID:+.$SLURM_ARRAY_TASK_ID} # of this run, which may begin again
tp_seen=$TP_RUN_DIR/ray.$tp_life
tp_asked='' tp_hit='' tp_node=${SLURMD_NODENAME:-$HOSTNAME} tp_cpus=${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-1}} tp_mib=${SLURM_MEM_PER_NODE:-0}
trap 'tp_asked=1 tp_hit=1' TERM
# What Slurm says of tasks would make MPI, accelerate and Lightning believe that
# each process of Ray is a task of srun.
for tp_name in "${!SLURM_@}" "${!PMI_@}" "${!PMIX_@}" "${!OMPI_@}" "${!MPI_@}"; do unset "$tp_name"; done
# ---- what this node has
if [ -n "${CUDA_VISIBLE_DEVICES+set}" ]; then
  tp_gpus=()
  if [ "$CUDA_VISIBLE_DEVICES" != NoDevFiles ]; then IFS=, read -ra tp_gpus <<<"$CUDA_VISIBLE_DEVICES"; fi
  if [ "${#tp_gpus[@]}" -ne "$TP_GPUS_PER_NODE" ]; then
    tp_die "$tp_node shows ${#tp_gpus[@]} GPUs (CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES), and pool $TP_POOL has $TP_GPUS_PER_NODE per node"
  fi
elif [ "$TP_GPUS_PER_NODE" -gt 0 ]; then
  echo "tp: CUDA_VISIBLE_DEVICES is not set on $tp_node: which GPUs are this job's is not known here"
fi
read -ra tp_addrs <<<"$tp_addresses"
tp_ip=${tp_addrs[TP_NODE_RANK]} tp_units=$TP_GPUS_PER_NODE
if [ "$tp_units" -eq 0 ]; then tp_units=1; fi
# Sockets are below this directory, and a socket's path has at most 107 bytes.
# Ray adds /ray/session_2026-01-31_12-00-00_123456_1234567/sockets/plasma_store.
export RAY_TMPDIR="${RAY_TMPDIR:-/tmp}/tp-${TP_RUN_ID#run-}.$tp_life"
if [ "${#RAY_TMPDIR}" -gt 36 ]; then tp_die "the directory $RAY_TMPDIR is ${#RAY_TMPDIR} bytes long and Ray needs at most 36: set RAY_TMPDIR to $((${#RAY_TMPDIR} - 36)) bytes less"; fi
mkdir -m 700 "$RAY_TMPDIR" 2>/dev/null || true
if [ ! -O "$RAY_TMPDIR" ] || [ ! -d "$RAY_TMPDIR" ] || [ -L "$RAY_TMPDIR" ]; then tp_die "$RAY_TMPDIR on $tp_node is not this user's directory"; fi
ulimit -Sn 65535 2>/dev/null || ulimit -Sn "$(ulimit -Hn)" || true
export RAY_ADDRESS="$tp_head:$tp_head_port" RAY_AUTH_MODE="${RAY_AUTH_MODE:-token}" RAY_ENABLE_UV_RUN_RUNTIME_ENV="${RAY_ENABLE_UV_RUN_RUNTIME_ENV:-0}"
if [ -z "${RAY_AUTH_TOKEN:-}" ]; then export RAY_AUTH_TOKEN_PATH="$tp_seen"; fi
# Every port that has a fixed default is one of this run's; where machines pose
# as two nodes each (test clusters) the odd one takes the second eight. Those of
# the worker processes, of which there is no end, are the kernel's choice.
tp_at=$((tp_port + TP_NODE_RANK % 2 * 8))
if [ -n "$tp_driver" ]; then tp_at=$((tp_port + 8)); fi
tp_options=(--node-ip-address="$tp_ip" --num-cpus="$tp_cpus" --num-gpus="$TP_GPUS_PER_NODE"
  --resources="{\"tp_pool_$TP_POOL\": $tp_units$tp_resources}"
  --node-manager-port="$tp_at" --object-manager-port="$((tp_at + 1))" --runtime-env-agent-port="$((tp_at + 2))"
  --dashboard-agent-listen-port="$((tp_at + 3))" --dashboard-agent-grpc-port="$((tp_at + 4))" --metrics-export-port="$((tp_at + 5))"
  --min-worker-port=0 --max-worker-port=0 --disable-usage-stats --block)
# Ray takes three tenths of the machine for objects; here it is of the job's share.
tp_store=$((tp_mib * 3 / 10)) tp_shm=$(df --output=avail -BM /dev/shm 2>/dev/null | tail -n 1 | tr -dc 0-9) || tp_shm=''
if [ -n "$tp_shm" ] && [ "$tp_store" -gt "$((tp_shm * 9 / 10))" ]; then tp_store=$((tp_shm * 9 / 10)); fi
if [ "$tp_store" -gt 200000 ]; then tp_store=200000; fi
if [ "$tp_store" -ge 80 ]; then tp_options+=(--object-store-memory="$((tp_store * 1048576))"); fi
tp_open() { # whether the head takes connections
  # shellcheck disable=SC2016 # bash inside has its own words
  timeout 5 bash -c ': <>"/dev/tcp/$0/$1"' "$tp_head_ip" "$tp_head_port" 2>/dev/null
}
tp_reach() { # waits until it does
  local until=$((SECONDS + tp_timeout))
  until tp_open; do
    if [ -n "$tp_asked" ]; then return 1; fi
    if [ -n "$tp_driver" ] && ! kill -0 "$tp_ray" 2>/dev/null; then return 1; fi
    if [ "$SECONDS" -ge "$until" ]; then tp_die "$tp_node: the head of Ray, $tp_head:$tp_head_port, does not answer after $tp_timeout s"; fi
    sleep 0.5
  done
}
tp_await() { # PID: waits for its end, whatever signals come; its exit code
  local rc
  while :; do
    tp_hit='' rc=0
    wait "$1" || rc=$?
    if [ -z "$tp_hit" ]; then return "$rc"; fi
  done
}
tp_stop() { # ends this node's Ray, not that of a neighbour as "ray stop" would
  local i
  kill -TERM "$tp_ray" 2>/dev/null || true
  for ((i = 0; i < 80; i++)); do
    kill -0 "$tp_ray" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$tp_ray" 2>/dev/null || true
  rm -rf "$RAY_TMPDIR" 2>/dev/null || true
}
tp_last() { # what Ray wrote last
  local file
  for file in "$RAY_TMPDIR"/ray/session_latest/logs/{gcs_server,raylet}.{out,err}; do
    [ ! -s "$file" ] || { echo "== the end of $file" && tail -n 15 "$file"; }
  done
}
