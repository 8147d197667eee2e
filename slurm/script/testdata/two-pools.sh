#!/bin/bash
# hello · run-0123456789ab
# sbatch runs this file as it is; tp submits the same text.
#SBATCH --job-name="it's a \"test\" #1 $HOME \\ 训练 🚀 hetjob.run-0123456789ab"
#SBATCH --comment=tp:run-0123456789ab
#SBATCH --chdir=/runs/ann/hello/run-0123456789ab
#SBATCH --output=/runs/ann/hello/run-0123456789ab/logs/job-%j.log
#SBATCH --open-mode=append
#SBATCH --export=NIL
#SBATCH --no-requeue
#SBATCH --partition=h200
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=64
#SBATCH --mem=1000000M
#SBATCH --gres=gpu:h200:8
#SBATCH --time=0-00:10:00
#SBATCH hetjob
#SBATCH --partition=h100
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --mem=500000M
#SBATCH --gres=gpu:h100:4
#SBATCH --time=0-00:10:00

# ---- environment: an allow-list, nothing of the submitting shell -----------------
# --export=NIL still brings every SLURM_ variable, which srun would take as an option.
for tp_var in "${!SLURM_@}"; do
  case $tp_var in
  SLURM_HET_SIZE | *_HET_GROUP_*) ;;
  SLURM_JOB_RESERVATION | SLURM_JOB_LICENSES) unset "$tp_var" ;;
  SLURM_JOB_* | SLURM_JOBID | SLURM_RESTART_COUNT | SLURM_CLUSTER_NAME | SLURM_CONF | SLURM_SUBMIT_* | \
  SLURM_NNODES | SLURM_NODELIST | SLURM_NTASKS | SLURM_NPROCS | SLURM_TASKS_PER_NODE | SLURM_CPUS_ON_NODE | SLURM_CPUS_PER_TASK | \
  SLURM_MEM_PER_NODE | SLURM_GPUS_ON_NODE | SLURM_NODEID | SLURM_PROCID | SLURM_LOCALID | SLURM_GTIDS | SLURM_TASK_PID | SLURM_TOPOLOGY_*) ;;
  *) unset "$tp_var" ;;
  esac
done
export PATH=/usr/local/bin:/usr/bin:/bin
export HOME=/home/alice
export USER=alice
export REWARDS=$'{"a": 1, "b": "it\'s"},\n$(id) `id` \\ 训练'
umask 077

set -euo pipefail
export TP_RUN_ID=run-0123456789ab
export TP_RUN_DIR=/runs/ann/hello/run-0123456789ab
export TP_ATTEMPT=1
export TP_ROLES=train,rollout
export TP_DRIVER=train
export TP_TIME_LIMIT=600
export TP_EXPERIMENT='it'\''s'

# ---- the run -------------------------------------------------------------------
export TP_CODE_DIR=$TP_RUN_DIR/code TP_OUT_DIR=$TP_RUN_DIR/out
export TP_RESTART=${SLURM_RESTART_COUNT:-0} TP_LOG_SUFFIX=
if ((TP_ATTEMPT > 1)); then TP_LOG_SUFFIX=.attempt$TP_ATTEMPT; fi
if ((TP_RESTART > 0)); then TP_LOG_SUFFIX+=.restart$TP_RESTART; fi
tp_mark=$TP_ATTEMPT.$TP_RESTART
tp_tmp=$(mktemp -d "${TMPDIR:-/tmp}/tp.XXXXXX")
tp_log=$TP_RUN_DIR/logs/job-$SLURM_JOB_ID.log
tp_log_start=$(wc -c <"$tp_log" 2>/dev/null || echo 0)
tp_say() { printf '[tp %(%H:%M:%S)T] %s\n' -1 "$*"; }
mkdir -p "$TP_RUN_DIR"/{claims,ends,logs,out}

# The end marker outlives the controller's memory. The first one written stays.
tp_end() { # STATE EXIT ROLE MESSAGE
  [[ -e $tp_tmp/ended ]] && return 0
  : >"$tp_tmp/ended"
  local message=${4//\\/} first="$TP_RUN_DIR/ends/$tp_mark.first"
  local node='' rank=0 nodes=${3^^}
  nodes=TP_ROLE_${nodes//[^A-Z0-9]/_}_NODES
  if [[ -n $3 && -s $first ]]; then
    read -r node rank _ <"$first" || true
  elif [[ -n $3 && ${!nodes:-} != *' '* ]]; then
    node=${!nodes:-} # a task that was killed could not tell, but it had no choice
  fi
  printf '{"attempt":%d,"restart":%d,"job_id":%d,"exit":%d,"state":"%s","role":"%s","node":"%s","node_rank":%d,"message":"%s","time":%(%s)T}\n' \
    "$TP_ATTEMPT" "$TP_RESTART" "$SLURM_JOB_ID" "$2" "$1" "$3" "$node" "$rank" "${message//\"/}" -1 >"$tp_tmp/end"
  cp "$tp_tmp/end" "$TP_RUN_DIR/ends/.$tp_mark.$SLURM_JOB_ID" && mv "$TP_RUN_DIR/ends/.$tp_mark.$SLURM_JOB_ID" "$TP_RUN_DIR/ends/$tp_mark.json"
  tp_say "$1${3:+ ($3)}: ${4}"
}

# ---- claim: one job per attempt, even if it was submitted twice ------------------
printf '%s\n' "$SLURM_JOB_ID" >"$TP_RUN_DIR/claims/.$TP_ATTEMPT.$SLURM_JOB_ID"
ln "$TP_RUN_DIR/claims/.$TP_ATTEMPT.$SLURM_JOB_ID" "$TP_RUN_DIR/claims/$TP_ATTEMPT" 2>/dev/null || true
rm -f "$TP_RUN_DIR/claims/.$TP_ATTEMPT.$SLURM_JOB_ID"
tp_owner=$(cat "$TP_RUN_DIR/claims/$TP_ATTEMPT")
if [[ $tp_owner != "$SLURM_JOB_ID" ]]; then
  tp_say "job $tp_owner already runs attempt $TP_ATTEMPT of $TP_RUN_ID; this job, $SLURM_JOB_ID, ends without doing anything"
  rm -rf "$tp_tmp"
  exit 79
fi

tp_leave() {
  local rc=$?
  trap - EXIT
  if [[ $rc -ne 0 ]]; then tp_end FAILED "$rc" '' "the batch script stopped with exit code $rc"; fi
  rm -rf "$tp_tmp"
  exit "$rc"
}
trap tp_leave EXIT
tp_why() { # sets tp_state and tp_reason: why Slurm ends this job; tp_state is empty when it does not
  local show lead said='' i
  tp_state='' tp_reason=''
  show=$(timeout 3 scontrol -o show job "$SLURM_JOB_ID" 2>/dev/null) || show=''
  lead=${show%%$'\n'*}
  # 22.05 shows COMPLETING whatever the cause; slurmstepd writes it into this
  # log, perhaps a moment after another node's roles were asked to stop.
  for ((i = 0; i < 10; i++)); do
    said=$(tail -c "+$((tp_log_start + 1))" "$tp_log" 2>/dev/null | grep -o "\*\*\* JOB $SLURM_JOB_ID ON .*\*\*\*" | tail -n 1) || said=''
    [[ -z $said && -n $lead && $lead != *JobState=RUNNING* ]] || break
    sleep 0.2
  done
  tp_restarts=0
  if [[ $lead =~ Restarts=([0-9]+) ]]; then tp_restarts=${BASH_REMATCH[1]}; fi
  case "$said $lead" in
  *'DUE TO TIME LIMIT'* | *JobState=TIMEOUT* | *JobState=DEADLINE*) tp_state=TIMEOUT tp_reason="time limit reached" ;;
  *'DUE TO PREEMPTION'* | *JobState=PREEMPTED*) tp_state=PREEMPTED tp_reason=preempted ;;
  *'DUE TO NODE FAILURE'* | *JobState=NODE_FAIL*)
    tp_state=FAILED
    # Not the state of a moment ago: Slurm ends a job after it has marked the node.
    tp_reason="node $(grep -o ' NodeList=[^ ]*' <<<"$show" | while IFS='=' read -r _ i; do timeout 3 sinfo -h -n "$i" -t down -o %N; done | sort -u | paste -sd ,) failed"
    ;;
  *)
    if ((tp_restarts > TP_RESTART)); then
      tp_state=PREEMPTED tp_reason=requeued
    elif [[ $lead == *JobState=RUNNING* && $show =~ PreemptTime=[0-9] ]]; then
      tp_state=PREEMPTED tp_reason="preempted, within its grace time,"
    elif [[ -n $said || (-n $lead && $lead != *JobState=RUNNING*) ]]; then
      tp_state=CANCELLED tp_reason=cancelled
    elif [[ $show == *JobState=COMPLETING* || $show == *JobState=CANCELLED* || $show == *JobState=NODE_FAIL* ]]; then
      tp_reason=$(sed -n 's/.*HetJobOffset=\([0-9]*\) .*JobState=\(COMPLETING\|CANCELLED\|NODE_FAIL\) .*/Slurm has ended component \1/p' <<<"$show" | paste -sd ,)
    fi
    ;;
  esac
  if ((tp_restarts > TP_RESTART)) && [[ $tp_state == FAILED ]]; then tp_state=PREEMPTED; fi
  if [[ -n $tp_state ]]; then tp_reason+=" after $SECONDS s"; fi
}
tp_stop() { # time limit, preemption, requeue or scancel
  trap '' TERM
  tp_why
  if [[ -z $tp_state ]]; then
    tp_state=CANCELLED tp_reason="cancelled after $SECONDS s"
    # Perhaps the controller does not answer; it looks at time limits every 30 s
    # and may be early by as much.
    if ((TP_TIME_LIMIT > 0 && SECONDS >= TP_TIME_LIMIT - 35)); then tp_state=TIMEOUT tp_reason="ended by Slurm after $SECONDS s, near its time limit"; fi
  fi
  tp_ended
}
tp_ended() { # Slurm ends the job: whatever code the roles gave, it is not their doing
  trap '' TERM
  tp_end "$tp_state" 143 '' "$tp_reason"
  tp_teardown
  # A job that ends by itself within its grace time has failed and is not
  # requeued: Slurm must be the one to end it.
  if [[ $tp_reason == *'grace time'* ]] && scontrol -o show job "$SLURM_JOB_ID" 2>/dev/null | grep -q ' Requeue=1 '; then
    trap 'exit 143' TERM
    sleep 3600 &
    wait "$!" || true
  fi
  exit 143
}
trap tp_stop TERM

# ---- roles in the background; the first failure ends the run ---------------------
declare -A tp_pid=()
tp_start() { # ROLE COMMAND...
  local role=$1
  shift
  (
    trap - EXIT
    trap 'kill -TERM "$child" 2>/dev/null || true' TERM
    "$@" &
    child=$! rc=0
    wait "$child" || rc=$?
    while kill -0 "$child" 2>/dev/null; do
      rc=0
      wait "$child" || rc=$?
    done
    printf '%s\n' "$rc" >"$tp_tmp/$role.rc"
  ) &
  tp_pid[$role]=$!
}
tp_running() { # whether a role has not ended yet
  local role
  for role in "${!tp_pid[@]}"; do [[ -s $tp_tmp/$role.rc ]] || return 0; done
  return 1
}
tp_teardown() { # ask every role to stop, wait 10 s, then insist
  local role i
  tp_running || return 0
  # srun answers SIGTERM by killing its tasks at once; scancel lets them end well.
  # A signal to the job reaches its steps, of every component, and not this script.
  scancel --quiet --signal=TERM "$SLURM_JOB_ID" 2>/dev/null || true
  for ((i = 0; i < 100; i++)); do
    tp_running || return 0
    sleep 0.1
  done
  tp_say "roles still run 10 s after they were asked to stop; killing them"
  for role in "${!tp_pid[@]}"; do kill -TERM "${tp_pid[$role]}" 2>/dev/null || true; done
}
tp_wait() { # returns with the run's exit code
  local role rc first="$TP_RUN_DIR/ends/$tp_mark.first"
  while :; do
    wait -n || true
    for role in "${!tp_pid[@]}"; do
      [[ -s $tp_tmp/$role.rc ]] || continue
      rc=$(<"$tp_tmp/$role.rc")
      unset "tp_pid[$role]"
      # Also after 0: srun says so when a node is lost, and so does a driver that
      # saves its work when it is asked to stop.
      tp_why
      if [[ -n $tp_state ]]; then tp_ended; fi
      if [[ $rc -ne 0 ]]; then
        # srun answers with the highest code of its tasks, and that may be of one
        # it killed because another had failed: the first failure is the cause.
        if [[ -s $first ]]; then read -r _ _ rc role <"$first" || true; fi
        tp_end FAILED "$rc" "$role" "role $role failed with exit code $rc${tp_reason:+: $tp_reason}"
        tp_teardown
        return "$rc"
      elif [[ $role == "$TP_DRIVER" ]]; then
        tp_end SUCCEEDED 0 "$role" "role $role ended well"
        tp_teardown
        return 0
      fi
      tp_say "role $role ended well before the driver"
    done
  done
}
tp_role() { # FUNCTION ROLE: runs once per node, under srun
  set -euo pipefail
  export TP_ROLE=$2 TP_NODE_RANK=${SLURM_PROCID:-0}
  local rc=0 node=${SLURMD_NODENAME:-$HOSTNAME} mark=$TP_ATTEMPT.$TP_RESTART
  if ! cd "$TP_EXP_DIR"; then
    echo "tp: $TP_EXP_DIR is not visible on $node: run_root must be a directory that all nodes share" >&2
    exit 66
  fi
  # Not srun --output: its %t is 4294967295 for the first task of a component's
  # step on 24.11 and 26.05.
  exec >>"$TP_RUN_DIR/logs/$TP_ROLE.node$TP_NODE_RANK$TP_LOG_SUFFIX.log" 2>&1
  trap : TERM # the role answers; this shell reports
  exec 3>&2 2>/dev/null # bash would print its own code when a signal ends the role
  set +e
  (
    exec 2>&3 3>&-
    trap - TERM
    set -euo pipefail
    "$1"
  )
  rc=$?
  if [[ $rc -ne 0 && ! -e $TP_RUN_DIR/ends/$mark.json ]]; then
    (set -C && printf '%s %s %s %s\n' "$node" "$TP_NODE_RANK" "$rc" "$TP_ROLE" >"$TP_RUN_DIR/ends/$mark.first") 2>/dev/null
  fi
  exit "$rc"
}

# ---- addresses and ports of the pools --------------------------------------------
tp_component() { # COMPONENT: the component's compact node list
  local list=SLURM_JOB_NODELIST_HET_GROUP_$1
  printf '%s\n' "${!list:-$SLURM_JOB_NODELIST}"
}
tp_addresses() { # COMPONENT: "NODE ADDRESS" lines in Slurm's order; NodeAddr as an IPv4 address when it resolves
  local list node addr found
  local -A address=()
  list=$(tp_component "$1")
  while read -r node addr; do address[$node]=$addr; done < <(scontrol -o show node "$list" | sed -n 's/^NodeName=\([^ ]*\) .*NodeAddr=\([^ ]*\) .*/\1 \2/p')
  while read -r node; do
    addr=${address[$node]:-$node} found=''
    [[ $addr =~ ^[0-9.]+$ ]] || found=$(getent ahostsv4 "$addr" | awk '!found++ {print $1}') || true
    printf '%s %s\n' "$node" "${found:-$addr}"
  done < <(scontrol show hostnames "$list")
}
tp_listening() { # ports in use on this node, one per line
  local hex
  awk '$4 == "0A" {split($2, a, ":"); print a[2]}' /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r hex; do echo $((16#$hex)); done
}
tp_interface() { # INTERFACE: "RANK ADDRESS" of this node
  ip -4 -o addr show dev "$1" scope global | awk -v rank="$SLURM_PROCID" '!found++ {split($4, a, "/"); print rank, a[1]}'
}
# Blocks of 16 ports from 10000 to 29999, below every ephemeral range in use
# (stock Linux starts at 32768). The job id picks where to look first, and ports
# that anything listens on are passed over.
declare -A tp_used=()
tp_next=$((SLURM_JOB_ID * 5 % 1250))
tp_block() { # sets tp_port to the first of 16 free ports
  local tries p
  for ((tries = 0; tries < 1250; tries++)); do
    tp_port=$((10000 + tp_next * 16))
    tp_next=$(((tp_next + 1) % 1250))
    for ((p = tp_port; p < tp_port + 16; p++)); do [[ -z ${tp_used[$p]:-} ]] || continue 2; done
    return 0
  done
  tp_say "no 16 free ports in a row between 10000 and 29999"
  return 1
}
tp_place() { # ROLE COMPONENT OFFSET NODES GPUS: exports where a role runs
  local var=${1^^}
  var=TP_ROLE_${var//[^A-Z0-9]/_}
  local -a nodes addrs
  mapfile -t nodes < <(sed -n "$(($3 + 1)),$(($3 + $4))s/ .*//p" "$tp_tmp/addresses.$2")
  mapfile -t addrs < <(sed -n "$(($3 + 1)),$(($3 + $4))s/.* //p" "$tp_tmp/addresses.$2")
  if [[ ${#nodes[@]} -ne $4 ]]; then
    tp_say "component $2 has ${#nodes[@]} nodes from $3 on; $1 needs $4"
    return 1
  fi
  tp_block
  export "${var}_NODES=${nodes[*]}" "${var}_ADDRS=${addrs[*]}" "${var}_HEAD=${addrs[0]}" \
    "${var}_NNODES=$4" "${var}_GPUS_PER_NODE=$5" "${var}_PORT=$tp_port"
  tp_say "role $1 on ${nodes[*]} (${addrs[0]} port $tp_port)"
}

# ---- stage-in: the bundle, verified ------------------------------------------------
mkdir -p "$TP_CODE_DIR/experiments/it's"
export TP_EXP_DIR=$TP_CODE_DIR/'experiments/it'\''s'

# ---- what each role runs, once per node of its pool --------------------------------
tp_role_0() { # train
command -v bash >/dev/null || { echo "tp: bash is not on the PATH of ${SLURMD_NODENAME:-$HOSTNAME}" >&2; exit 127; }
export TP_POOL=train TP_NNODES=1 TP_GPUS_PER_NODE=8
echo "train: $REWARDS on $CUDA_VISIBLE_DEVICES; rollout at $TP_ROLE_ROLLOUT_ADDRS"
sleep 3
}
tp_role_1() { # rollout
export TP_POOL=rollout TP_NNODES=2 TP_GPUS_PER_NODE=4
echo "rollout $TP_NODE_RANK: $REWARDS on $CUDA_VISIBLE_DEVICES"
trap 'echo bye; exit 0' TERM; sleep 60 & wait
}

# ---- where the roles run -----------------------------------------------------------
tp_addresses 0 >"$tp_tmp/addresses.0"
srun --het-group=0 --overlap --mpi=none --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=1 --gres=none bash -c "$(declare -f tp_listening); tp_listening" >"$tp_tmp/ports.0" &
tp_addresses 1 >"$tp_tmp/addresses.1"
srun --het-group=1 --overlap --mpi=none --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=1 --gres=none bash -c "$(declare -f tp_listening); tp_listening" >"$tp_tmp/ports.1" &
wait
while read -r tp_port; do tp_used[$tp_port]=1; done < <(cat "$tp_tmp"/ports.*)
tp_place train 0 0 1 8
tp_place rollout 1 0 2 4

# ---- start the roles, wait for the driver or the first failure ---------------------
tp_start rollout srun --het-group=1 --job-name=rollout --overlap --mpi=none --kill-on-bad-exit=1 --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=32 --gres=gpu:h100:4 \
  bash -c "$(declare -f tp_role tp_role_1); tp_role tp_role_1 rollout"
tp_start train srun --het-group=0 --job-name=train --overlap --mpi=none --kill-on-bad-exit=1 --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=64 --gres=gpu:h200:8 \
  bash -c "$(declare -f tp_role tp_role_0); tp_role tp_role_0 train"
tp_rc=0
tp_wait || tp_rc=$?
exit "$tp_rc"
