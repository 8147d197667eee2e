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
