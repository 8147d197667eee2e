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
