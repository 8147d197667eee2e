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
tp_pools=(train rollout)
declare -A tp_component=([train]=0 [rollout]=1)

# ---- the run -------------------------------------------------------------------
export TP_CODE_DIR=$TP_RUN_DIR/code TP_OUT_DIR=$TP_RUN_DIR/out
export TP_RESTART=${SLURM_RESTART_COUNT:-0} TP_LOG_SUFFIX
tp_task=${SLURM_ARRAY_TASK_ID:+.$SLURM_ARRAY_TASK_ID} # of an array: its tasks share the run directory
TP_LOG_SUFFIX=${tp_task:+.task${tp_task#.}}
if ((TP_ATTEMPT > 1)); then TP_LOG_SUFFIX+=.attempt$TP_ATTEMPT; fi
if ((TP_RESTART > 0)); then TP_LOG_SUFFIX+=.restart$TP_RESTART; fi
tp_mark=$TP_ATTEMPT.$TP_RESTART$tp_task tp_cause=''
declare -A tp_pid=() # of the roles that run
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
ln "$TP_RUN_DIR/claims/.$TP_ATTEMPT.$SLURM_JOB_ID" "$TP_RUN_DIR/claims/$TP_ATTEMPT$tp_task" 2>/dev/null || true
rm -f "$TP_RUN_DIR/claims/.$TP_ATTEMPT.$SLURM_JOB_ID"
tp_owner=$(cat "$TP_RUN_DIR/claims/$TP_ATTEMPT$tp_task")
if [[ $tp_owner != "$SLURM_JOB_ID" ]]; then
  [[ $tp_owner != [0-9]* ]] || tp_owner="job $tp_owner"
  tp_say "attempt $TP_ATTEMPT of $TP_RUN_ID belongs to $tp_owner; this job, $SLURM_JOB_ID, ends without doing anything"
  rm -rf "$tp_tmp"
  exit 79
fi

tp_fail() { # EXIT MESSAGE: ends the script for this reason
  tp_cause=$2
  exit "$1"
}
tp_leave() {
  local rc=$? i
  trap - EXIT
  local what="the batch script stopped"
  if [[ $rc -ne 0 && ${#tp_pid[@]} -eq 0 ]]; then
    case $rc in
      65) what="stage-in found a damaged object of the bundle, see the log, and stopped" ;;
      69) what="stage-in could not reach the code, see the log, and stopped" ;;
      73) what="stage-in had no space or right to write, see the log, and stopped" ;;
    esac
  fi
  if [[ $rc -ne 0 ]]; then tp_end FAILED "$rc" '' "${tp_cause:-$what with exit code $rc}"; fi
  # The pools' steps end when nobody can talk to them; Slurm would call them cancelled.
  tp_close
  for ((i = 0; i < 20; i++)); do
    kill -0 "${tp_step[@]}" 2>/dev/null || break
    sleep 0.1
  done
  rm -rf "$tp_tmp"
  exit "$rc"
}
trap tp_leave EXIT
tp_why() { # [COMPONENT...]: sets tp_state and tp_reason: why Slurm ends this job, or one of these components; tp_state is empty when it does not
  local show said='' i
  tp_state='' tp_reason='' tp_restarts=0
  for ((i = 0; i < 3; i++)); do # a busy controller may need longer; KillWait leaves 30 s
    show=$(timeout 3 scontrol -o show job "$SLURM_JOB_ID" 2>/dev/null) || show=''
    if [[ -n $show ]]; then break; fi
  done
  tp_record=${show%%$'\n'*}
  if [[ $tp_record =~ Restarts=([0-9]+) ]]; then tp_restarts=${BASH_REMATCH[1]}; fi
  # 22.05 shows COMPLETING whatever the cause; slurmstepd writes it into this
  # log, perhaps a moment after another node's roles were asked to stop.
  for ((i = 0; i < 10; i++)); do
    said=$(tp_said "JOB $SLURM_JOB_ID")
    if [[ -n $said ]] || ! tp_ending; then break; fi
    sleep 0.2
  done
  tp_judge "$said"
  if [[ $tp_state == FAILED ]]; then tp_reason="node $(tp_lost "$show") failed"; fi
  if ((tp_restarts > TP_RESTART)) && [[ $tp_state != TIMEOUT && $tp_state != PREEMPTED ]]; then
    if [[ $tp_state != FAILED ]]; then tp_reason=requeued; fi
    tp_state=PREEMPTED
  elif [[ -z $tp_state && $show =~ PreemptTime=[0-9] ]]; then
    tp_state=PREEMPTED tp_reason="preempted, within its grace time,"
  fi
  for i; do
    if [[ -z $tp_state && $i -gt 0 ]]; then tp_why_pool "$i" "$show"; fi
  done
  if [[ -n $tp_state ]]; then tp_reason+=" after $SECONDS s"; fi
}
tp_why_pool() { # COMPONENT SHOW: the same of a component that Slurm has ended while the job goes on
  local id i pool="pool ${tp_pools[$1]}"
  tp_record=$(grep " HetJobOffset=$1 " <<<"$2") || return 0
  id=${tp_record#JobId=} id=${id%% *}
  for ((i = 0; i < 10; i++)); do
    tp_ending || return 0
    tp_judge "$(tp_said "STEP $id\.[0-9]*")"
    # COMPLETING hides what it is; a time limit is the reason beside it already.
    [[ $tp_state == CANCELLED && $tp_record == *JobState=COMPLETING* ]] || break
    sleep 0.2
    tp_record=$(timeout 3 scontrol -o show job "$id" 2>/dev/null | grep " HetJobOffset=$1 ") || break
  done
  case $tp_state in
  TIMEOUT) tp_reason="$pool reached its own time limit" ;;
  PREEMPTED) tp_reason="$pool was preempted" ;;
  FAILED) tp_reason="$pool lost node $(tp_lost "$tp_record")" ;;
  CANCELLED) tp_reason="$pool was cancelled" ;;
  esac
}
tp_said() { # WHOSE: slurmstepd's last word on why it ends that
  tail -c "+$((tp_log_start + 1))" "$tp_log" 2>/dev/null | grep -o "\*\*\* $1 ON .*\*\*\*" | tail -n 1 || true
}
tp_ending() { # whether tp_record is of a job that ends or has ended
  # A job that gets a signal, also the warning before its time limit, shows
  # SIGNALING for a moment from 24.11 on.
  [[ $tp_record =~ JobState=([A-Z_]+) && ! ${BASH_REMATCH[1]} =~ ^(RUNNING|SIGNALING|SUSPENDED|STOPPED|RESIZING|CONFIGURING|POWER_UP_NODE|UPDATE_DB)$ ]]
}
tp_judge() { # SAID: sets tp_state and tp_reason by that and tp_record
  case "$1 $tp_record" in
  *'DUE TO TIME LIMIT'* | *JobState=TIMEOUT* | *JobState=DEADLINE* | *' Reason=TimeLimit '*) tp_state=TIMEOUT tp_reason="time limit reached" ;;
  *'DUE TO PREEMPTION'* | *JobState=PREEMPTED*) tp_state=PREEMPTED tp_reason=preempted ;;
  *'DUE TO NODE FAILURE'* | *JobState=NODE_FAIL*) tp_state=FAILED ;;
  *) if [[ -n $1 ]] || tp_ending; then tp_state=CANCELLED tp_reason=cancelled; fi ;;
  esac
}
tp_lost() { # SHOW: which nodes of these jobs are down
  local nodes
  # Not the state of a moment ago: Slurm ends a job after it has marked the node.
  grep -o ' NodeList=[^ ]*' <<<"$1" | while IFS='=' read -r _ nodes; do timeout 3 sinfo -h -n "$nodes" -t down -o %N; done | sort -u | paste -sd , || true
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
tp_start() { # ROLE COMMAND...
  local role=$1
  shift
  (
    trap - EXIT
    tp_close
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
tp_words() { # ROLE: what our own part of it said last, in the log of the node that failed first
  local rank=0 first="$TP_RUN_DIR/ends/$tp_mark.first" said
  [[ ! -s $first ]] || read -r _ rank _ <"$first" || true
  said=$(tail -n 30 "$TP_RUN_DIR/logs/$1.node$rank$TP_LOG_SUFFIX.log" 2>/dev/null | sed -n 's/^tp: //p' | tail -n 1 | tr -d '[:cntrl:]') || said=''
  printf '%s' "${said:+: ${said:0:400}}"
}
tp_wait() { # returns with the run's exit code
  local role rc i gone first="$TP_RUN_DIR/ends/$tp_mark.first"
  while :; do
    wait -n || true
    for role in "${!tp_pid[@]}"; do
      [[ -s $tp_tmp/$role.rc ]] || continue
      rc=$(<"$tp_tmp/$role.rc")
      # Also after 0: srun says so when a node is lost, and so does a driver that
      # saves its work when it is asked to stop. Slurm may have ended the pool of
      # any role that was running; a driver that ended well needs none of them.
      gone=()
      if [[ $role != "$TP_DRIVER" || $rc -ne 0 ]]; then
        for i in "${!tp_pid[@]}"; do gone+=("${tp_component[$i]}"); done
      fi
      tp_why "${gone[@]}"
      unset "tp_pid[$role]"
      if [[ -n $tp_state ]]; then tp_ended; fi
      if [[ $rc -ne 0 ]]; then
        # srun answers with the highest code of its tasks, and that may be of one
        # it killed because another had failed: the first failure is the cause.
        if [[ -s $first ]]; then read -r _ _ rc role <"$first" || true; fi
        tp_end FAILED "$rc" "$role" "role $role failed with exit code $rc$(tp_words "$role")"
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
tp_mpi() { # PLUGIN: srun must have it
  local list
  list=$(srun --mpi=list 2>&1) || true
  if ! grep -qw -- "$1" <<<"$list"; then
    tp_fail 69 "srun has no MPI plugin $1 on this cluster; it has $(grep -o '[a-z0-9_]*$' <<<"$list" | paste -sd ' ')"
  fi
}
tp_role() { # FUNCTION ROLE [FROM]: runs once per node (MPI: once per task), under srun
  set -euo pipefail
  export TP_ROLE=$2 TP_NODE_RANK=$((${SLURM_NODEID:-0} + ${3:-0}))
  local rc=0 node=${SLURMD_NODENAME:-$HOSTNAME} mark=$TP_ATTEMPT.$TP_RESTART${SLURM_ARRAY_TASK_ID:+.$SLURM_ARRAY_TASK_ID}
  if ! cd "$TP_EXP_DIR"; then
    echo "tp: $TP_EXP_DIR is not visible on $node: run_root must be a directory that all nodes share" >&2
    exit 66
  fi
  # Not srun --output: its %t is 4294967295 for the first task of a component's
  # step on 24.11 and 26.05.
  exec >>"$TP_RUN_DIR/logs/$TP_ROLE.node$TP_NODE_RANK$TP_LOG_SUFFIX.log" 2>&1
  trap : TERM USR1 USR2 # the role answers, also to a warning (--signal); this shell reports
  exec 3>&2 2>/dev/null # bash would print its own code when a signal ends the role
  set +e
  (
    exec 2>&3 3>&-
    trap - TERM USR1 USR2
    set -euo pipefail
    "$1"
  )
  rc=$?
  if [[ $rc -ne 0 && ! -e $TP_RUN_DIR/ends/$mark.json ]]; then
    (set -C && printf '%s %s %s %s\n' "$node" "$TP_NODE_RANK" "$rc" "$TP_ROLE" >"$TP_RUN_DIR/ends/$mark.first") 2>/dev/null
  fi
  exit "$rc"
}

# ---- pools: where they are, and ports that are theirs -----------------------------
# One step per pool, started like its roles and so with the same ranks, tells
# about its nodes and holds ports on them until this script closes its stdin.
# What it says begins with "tp:RANK ": a site's prologs may print as well.
declare -A tp_ask=() tp_hear=() tp_step=() tp_size=() tp_answers=() tp_lack=() tp_held=() tp_names=() tp_addrs=() tp_used=() tp_node_is=() tp_address=()
tp_low=65536 tp_high=0 tp_pool_list=()
tp_node() { # INTERFACE PORTS: on each node of a pool
  trap '' HUP INT QUIT TERM USR1 USR2 # meant for the roles; this ends with its stdin
  local rank=${SLURM_PROCID:-0} node=${SLURMD_NODENAME:-$HOSTNAME} low high family address what list port word answer idle='' dir='' d fd
  local -A lock=()
  PATH+=:/usr/sbin:/sbin
  printf 'tp:%s node %s %s-%s\n' "$rank" "$node" "$(</proc/sys/kernel/random/boot_id)" "$(readlink /proc/self/ns/net)"
  if [[ -n $1 ]] && ! grep -q "^ *$1:" /proc/net/dev; then
    printf 'tp:%s fault there is no interface %s; there are %s\n' "$rank" "$1" "$(sed -n 's/^ *\([^ ]*\):.*/\1/p' /proc/net/dev | paste -sd ' ')"
  elif [[ -n $1 ]] && ! command -v ip >/dev/null; then
    printf 'tp:%s fault the command ip, which knows the address of %s, is missing\n' "$rank" "$1"
  fi
  if [[ -n $2 ]]; then
    low=0 high=0
  else
    read -r low high </proc/sys/net/ipv4/ip_local_port_range || { low=32768 high=60999; }
  fi
  printf 'tp:%s range %s %s\n' "$rank" "$low" "$high"
  # Whatever is bound outside the ephemeral range, and what the kernel was told to leave alone.
  awk -v low="$low" -v high="$high" -v rank="$rank" '
    function number(hex,  n, i) { n = 0; for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789ABCDEF", substr(hex, i, 1)) - 1; return n }
    function used(p) { if (p >= 1024 && (p < low || p > high) && !seen[p]++) print "tp:" rank " used " p }
    FILENAME ~ /reserved/ { n = split($0, list, ","); for (i = 1; i <= n; i++) { m = split(list[i], ends, "-"); for (p = ends[1] + 0; p <= ends[m] + 0; p++) used(p) }; next }
    FNR > 1 { split($2, part, ":"); used(number(part[2])) }' \
    /proc/sys/net/ipv4/ip_local_reserved_ports /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 2>/dev/null || true
  printf 'tp:%s done\n' "$rank"
  # A lock of a place that all users of the node see; the kernel gives it back
  # however this process ends.
  if command -v flock >/dev/null; then
    for d in /run/lock /var/tmp /tmp; do
      [[ -d $d && -w $d && -k $d ]] || continue
      [[ -e $d/tp-ports ]] || mkdir -m 1777 "$d/tp-ports" 2>/dev/null || true
      if [[ -d $d/tp-ports && ! -L $d/tp-ports && -w $d/tp-ports ]]; then dir=$d/tp-ports && break; fi
    done
  fi
  while read -r what list; do
    answer=''
    case $what in
    own)
      for family in 4 6; do
        address=$(tp_own "$family" "$1") || address=''
        [[ -z $address ]] || answer+="tp:$rank own$family $address"$'\n'
      done
      answer+="tp:$rank done"$'\n'
      ;;
    idle) [[ " $list " != *" $rank "* ]] || idle=1 ;; # another rank of this machine answers
    drop)
      if [[ -n ${lock[$list]:-} ]]; then
        fd=${lock[$list]}
        exec {fd}<&-
      fi
      ;;
    hold)
      [[ -z $idle ]] || continue
      for port in $list; do
        word=held fd=''
        if [[ -n $dir ]]; then
          [[ -e $dir/$port ]] || (umask 022 && set -C && : >"$dir/$port") 2>/dev/null || true
          if [[ -f $dir/$port && ! -L $dir/$port ]] && { exec {fd}<"$dir/$port"; } 2>/dev/null && flock -n "$fd"; then
            lock[$port]=$fd
          else
            word=busy
            [[ -z $fd ]] || exec {fd}<&-
          fi
        fi
        answer+="tp:$rank $word $port"$'\n'
      done
      ;;
    esac
    printf '%s' "$answer"
  done
}
tp_own() { # 4|6 INTERFACE: this node's own address; without an interface that of the default route
  local all found='' to=203.0.113.1
  if [[ $1 == 6 ]]; then to=2001:db8::1; fi
  if [[ -z $2 ]]; then
    found=$(ip "-$1" -o route get "$to" 2>/dev/null | sed -n 's/.* src \([^ ]*\).*/\1/p')
    case $found in 127.* | ::1 | fe80:*) found='' ;; esac
  fi
  if [[ -z $found ]]; then
    # No default route: the first address that is not of a bridge for containers.
    # shellcheck disable=SC2086
    all=$(ip "-$1" -o addr show ${2:+dev "$2"} up 2>/dev/null | grep -Ev ' (tentative|deprecated|temporary|dadfailed)( |$)' | sed -n 's/^[0-9]*: *\([^ @]*\).* inet6* \([^ /]*\).*/\1 \2/p')
    found=$(awk -v wanted="$2" '$2 ~ /^(fe80:|169\.254\.)/ || (wanted == "" && ($1 ~ /^(lo|docker|virbr|veth|br-|cni|flannel|cali)/)) {next} {print $2; exit}' <<<"$all")
  fi
  if [[ -z $found && -z $2 && $1 == 4 ]] && ! command -v ip >/dev/null; then found=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -m 1 '^[0-9.]*$'); fi
  printf '%s\n' "$found"
}
tp_pool() { # POOL NODES BLOCKS SRUN...: starts the pool's step, which shall hold so many blocks of ports
  local pool=$1 ask hear
  tp_pool_list+=("$pool") tp_size[$pool]=$2 tp_lack[$pool]=$3
  shift 3
  mkfifo "$tp_tmp/$pool.ask" "$tp_tmp/$pool.hear"
  exec {ask}<>"$tp_tmp/$pool.ask" {hear}<>"$tp_tmp/$pool.hear"
  tp_ask[$pool]=$ask tp_hear[$pool]=$hear
  (
    trap - EXIT TERM
    tp_close
    exec "$@" bash -c "$(declare -f tp_own tp_node); tp_node \"\$@\"" tp_node "$tp_interface" "$tp_ports" \
      <"$tp_tmp/$pool.ask" >"$tp_tmp/$pool.hear" 2>"$tp_tmp/$pool.err"
  ) &
  tp_step[$pool]=$!
}
tp_close() { # this process has nothing to say to the pools' steps any more
  local fd
  for fd in "${tp_ask[@]}" "${tp_hear[@]}"; do exec {fd}>&-; done
}
tp_listen() { # POOL: sets tp_line to what a node says next, without "tp:"
  local part since=$SECONDS
  tp_line=''
  while :; do
    if IFS= read -r -t 1 -u "${tp_hear[$1]}" part; then
      tp_line+=$part
      if [[ $tp_line =~ tp:([0-9]+\ .*) ]]; then
        tp_line=${BASH_REMATCH[1]}
        return 0
      fi
      tp_line='' since=$SECONDS
      continue
    fi
    tp_line+=$part
    if ! kill -0 "${tp_step[$1]}" 2>/dev/null; then
      tp_fail 71 "the step on the nodes of pool $1 ended: $(tail -n 5 "$tp_tmp/$1.err" | paste -sd ' ')"
    fi
    if ((SECONDS - since > 300)); then
      tp_fail 71 "the nodes of pool $1 have not answered for 5 minutes: $(tail -n 5 "$tp_tmp/$1.err" | paste -sd ' ')"
    fi
  done
}
tp_meet() { # POOL: hears what its nodes say of themselves
  local left=${tp_size[$1]} rank what a b idle=() pool=$1
  local -A machine=()
  while ((left > 0)); do
    tp_listen "$pool"
    read -r rank what a b <<<"$tp_line"
    case $what in
    node) tp_node_is[$pool,$rank]=$a machine[$rank]=$b ;;
    range)
      if ((a < tp_low)); then tp_low=$a; fi
      if ((b > tp_high)); then tp_high=$b; fi
      ;;
    used) tp_used[$a]=1 ;;
    fault) tp_fail 71 "node ${tp_node_is[$pool,$rank]} of pool $pool: $a${b:+ $b}" ;;
    done) left=$((left - 1)) ;;
    esac
  done
  # "Nodes" of a test cluster are one machine, where a lock is had once.
  for ((rank = 0; rank < tp_size[$pool]; rank++)); do
    if [[ -n ${machine[on ${machine[$rank]}]:-} ]]; then idle+=("$rank"); fi
    machine[on ${machine[$rank]}]=1
  done
  tp_answers[$pool]=$((tp_size[$pool] - ${#idle[@]}))
  if ((${#idle[@]} > 0)); then printf 'idle %s\n' "${idle[*]}" >&"${tp_ask[$pool]}"; fi
}
tp_resolve() { # 4|6 NAME: its first address that is of use to another node
  local found
  case $2 in
  *:*) if [[ $1 == 6 ]]; then printf '%s\n' "$2"; fi ;;
  *[!0-9.]*)
    found=$(getent "ahostsv$1" "$2" 2>/dev/null) || true
    # Many hosts have their own name for a loopback address (Debian: 127.0.1.1).
    awk '$1 !~ /^(127\.|::1$|::ffff:|fe80:|169\.254\.)/ && !found++ {print $1}' <<<"$found"
    ;;
  *) if [[ $1 == 4 ]]; then printf '%s\n' "$2"; fi ;;
  esac
}
tp_owns() { # asks all nodes for their own addresses
  local pool left rank what a
  for pool in "${tp_pool_list[@]}"; do printf 'own\n' >&"${tp_ask[$pool]}"; done
  for pool in "${tp_pool_list[@]}"; do
    left=${tp_size[$pool]}
    while ((left > 0)); do
      tp_listen "$pool"
      read -r rank what a <<<"$tp_line"
      case $what in
      own4 | own6) tp_address[$what,$pool,$rank]=$a ;;
      done) left=$((left - 1)) ;;
      esac
    done
  done
}
tp_meet_all() { # names and addresses of all pools in rank order, and ports
  local pool rank node list='' sources first=4 other=6
  local -A slurm=()
  for pool in "${tp_pool_list[@]}"; do tp_meet "$pool"; done
  if [[ $tp_family == ipv6 ]]; then first=6 other=4; fi
  sources="slurm$first slurm$other own$first own$other"
  if [[ -n $tp_family ]]; then sources="slurm$first own$first slurm$other own$other"; fi
  if [[ -n $tp_interface ]]; then
    sources="own$first own$other"
  else
    for node in "${tp_node_is[@]}"; do list+=,$node; done
    while read -r node addr; do slurm[$node]=$addr; done < <(scontrol -o show node "${list#,}" 2>/dev/null | sed -n 's/^NodeName=\([^ ]*\) .*NodeAddr=\([^ ]*\) .*/\1 \2/p')
  fi
  local addr source asked=''
  for pool in "${tp_pool_list[@]}"; do
    for ((rank = 0; rank < tp_size[$pool]; rank++)); do
      node=${tp_node_is[$pool,$rank]} addr=''
      for source in $sources; do
        if [[ $source == own* && -z $asked ]]; then asked=1 && tp_owns; fi
        case $source in
        slurm*) addr=$(tp_resolve "${source#slurm}" "${slurm[$node]:-$node}") ;;
        own*) addr=${tp_address[$source,$pool,$rank]:-} ;;
        esac
        [[ -z $addr ]] || break
      done
      if [[ -z $addr && -n $tp_interface ]]; then tp_fail 71 "interface $tp_interface of node $node (pool $pool) has no address"; fi
      if [[ -z $addr ]]; then tp_fail 71 "node $node (pool $pool) has no address: Slurm's NodeAddr ${slurm[$node]:-} does not resolve and the node has none but loopback"; fi
      tp_names[$pool]+=${tp_names[$pool]:+ }$node
      tp_addrs[$pool]+=${tp_addrs[$pool]:+ }$addr
    done
  done
  tp_hold
}
# Ports below the ephemeral range of every node, where no connection takes one
# by chance; above it where there is no room below; system services are at home
# below 10000, so these come last. The job id chooses where to look first in
# each, no more: who holds a block has it.
tp_windows() { # sets tp_window: "FIRST COUNT" of the blocks of 16 ports, in the order to look
  local from to window
  local -a list
  list=("10000 $((tp_low - 1))" "$((tp_high > 9999 ? tp_high + 1 : 10000)) 65535" "1024 $((tp_low < 10000 ? tp_low - 1 : 9999))")
  if [[ -n $tp_ports ]]; then list=("${tp_ports/-/ }"); fi
  tp_window=()
  for window in "${list[@]}"; do
    read -r from to <<<"$window"
    from=$(((from + 15) / 16 * 16))
    if ((to - from >= 15)); then tp_window+=("$from $(((to - from + 1) / 16))"); fi
  done
}
tp_looked=0
tp_block() { # sets tp_port to the next block that nothing is known to use; fails when there is none
  local from count window p i=$tp_looked
  for window in "${tp_window[@]}"; do
    read -r from count <<<"$window"
    for (( ; i < count; i++)); do
      tp_port=$((from + (SLURM_JOB_ID * 7919 + i) % count * 16)) tp_looked=$((tp_looked + 1))
      for ((p = tp_port; p < tp_port + 16; p++)); do [[ -z ${tp_used[$p]:-} ]] || continue 2; done
      return 0
    done
    i=$((i - count))
  done
  return 1
}
tp_hold() { # sets tp_held: blocks that are this job's on all nodes of a pool
  local pool port rank what a left where more=1
  local -A asked=() busy=()
  tp_windows
  while ((more)); do
    more=0
    for pool in "${tp_pool_list[@]}"; do
      asked[$pool]=''
      for ((left = tp_lack[$pool]; left > 0; left--)); do
        if ! tp_block; then
          where="outside $tp_low-$tp_high, where the kernel of the nodes takes those of connections; the site file may name others: [network] ports"
          if [[ -n $tp_ports ]]; then where="in $tp_ports"; fi
          tp_fail 71 "the nodes of pool $pool have no 16 free ports in a row $where"
        fi
        asked[$pool]+=" $tp_port"
      done
      [[ -z ${asked[$pool]} ]] || printf 'hold%s\n' "${asked[$pool]}" >&"${tp_ask[$pool]}"
    done
    for pool in "${tp_pool_list[@]}"; do
      for ((left = tp_lack[$pool] * tp_answers[$pool]; left > 0; left--)); do
        tp_listen "$pool"
        read -r rank what a <<<"$tp_line"
        if [[ $what == busy ]]; then busy[$a]=1; fi
      done
      for port in ${asked[$pool]}; do
        if [[ -n ${busy[$port]:-} ]]; then
          more=1
          printf 'drop %d\n' "$port" >&"${tp_ask[$pool]}"
        else
          tp_held[$pool]+=" $port" tp_lack[$pool]=$((tp_lack[$pool] - 1))
        fi
      done
    done
  done
}
tp_place() { # ROLE|POOL NAME POOL GPUS: exports where it is
  local var=${2^^} host
  local -a nodes addrs
  var=TP_$1_${var//[^A-Z0-9]/_}
  read -ra nodes <<<"${tp_names[$3]}"
  read -ra addrs <<<"${tp_addrs[$3]}"
  host=${addrs[0]}
  if [[ $host == *:* ]]; then host="[$host]"; fi
  read -r tp_port "tp_held[$3]" <<<"${tp_held[$3]}"
  export "${var}_NODES=${nodes[*]}" "${var}_ADDRS=${addrs[*]}" "${var}_HEAD=$host" "${var}_IP=${addrs[0]}" \
    "${var}_NNODES=${#nodes[@]}" "${var}_GPUS_PER_NODE=$4" "${var}_PORT=$tp_port" "${var}_ENDPOINT=$host:$tp_port"
  tp_say "${1,,} $2 on ${nodes[*]} ($host:$tp_port)"
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

# ---- where the pools and roles run -------------------------------------------------
tp_interface='' tp_family='' tp_ports=''
tp_pool train 1 2 srun --het-group=0 --job-name=tp-pool --overlap --mpi=none --kill-on-bad-exit=1 --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=1 --gres=none
tp_pool rollout 2 2 srun --het-group=1 --job-name=tp-pool --overlap --mpi=none --kill-on-bad-exit=1 --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=1 --gres=none
tp_meet_all
tp_place POOL train train 8
tp_place POOL rollout rollout 4
tp_place ROLE train train 8
tp_place ROLE rollout rollout 4

# ---- start the roles, wait for the driver or the first failure ---------------------
tp_start rollout srun --het-group=1 --job-name=rollout --overlap --mpi=none --kill-on-bad-exit=1 --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=32 --gres=gpu:h100:4 \
  bash -c "$(declare -f tp_role tp_role_1); tp_role tp_role_1 rollout"
tp_start train srun --het-group=0 --job-name=train --overlap --mpi=none --kill-on-bad-exit=1 --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=64 --gres=gpu:h200:8 \
  bash -c "$(declare -f tp_role tp_role_0); tp_role tp_role_0 train"
tp_rc=0
tp_wait || tp_rc=$?
exit "$tp_rc"
