# shellcheck shell=bash disable=SC2034 # the parts share their variables
# Talk, waiting, and daemons that are known by a pid file and their name.

STARTED=${EPOCHREALTIME/[.,]/}

# say TEXT: one line of progress with the seconds since the start, on stderr.
say() {
	local us=$((${EPOCHREALTIME/[.,]/} - STARTED))
	printf '[%4d.%ds] %s\n' $((us / 1000000)) $((us / 100000 % 10)) "$*" >&2
}

# die CODE TEXT
die() {
	local code=$1
	shift
	printf 'devcluster: %s\n' "$*" >&2
	exit "$code"
}

need_value() { [ $# -ge 2 ] || die 2 "$1 wants a value"; }
need_number() {
	need_value "$@"
	case $2 in '' | *[!0-9]*) die 2 "$1 wants a whole number, found $2" ;; esac
}
need_root() {
	[ "$(id -u)" = 0 ] || die 2 "$1 needs root, for it starts daemons of several users: run it with sudo"
}

# lives PID COMM: the process is there, is no zombie, and is what we think it is
# (pids are used again, and pid 1 may take seconds to reap a zombie).
lives() {
	local name state
	{ read -r name <"/proc/$1/comm"; } 2>/dev/null || return 1
	[ "$name" = "$2" ] || return 1
	while read -r name state; do
		[ "$name" != State: ] || break
	done <"/proc/$1/status" 2>/dev/null || return 1
	case $state in Z* | X* | '') return 1 ;; esac
}

# running NAME: what start_daemon started under that name is alive.
running() {
	local pid comm
	[ -s "$RUN/$1.pid" ] || return 1
	read -r pid comm <"$RUN/$1.pid"
	lives "$pid" "$comm"
}

# start_daemon NAME CMD...: CMD runs in the world of the release, detached.
# Returns 1 when it is running already just as asked: the fingerprint covers
# the command line and FINGERPRINT, where callers put what it read at its start.
# A daemon that runs otherwise is replaced.
start_daemon() {
	local name=$1 mark
	shift
	mark=$(printf '%s\n' "${FINGERPRINT:-}" "$@" | sha256sum)
	if running "$name"; then
		[ "$(cat "$RUN/$name.mark")" != "$mark" ] || return 1
		stop_daemon "$name"
	fi
	# setsid does not fork here, and chroot, env and setpriv exec: $! is the daemon.
	setsid "${WORLD[@]}" "$@" >"$LOG/$name.out" 2>&1 </dev/null 9>&- &
	echo "$! ${COMM:-$name}" >"$RUN/$name.pid"
	echo "$mark" >"$RUN/$name.mark"
}

# stop_daemon NAME: TERM, then KILL after ten seconds. Quiet when it is not there.
stop_daemon() {
	local pid comm i
	[ -s "$RUN/$1.pid" ] || return 0
	read -r pid comm <"$RUN/$1.pid"
	if lives "$pid" "$comm"; then
		kill "$pid"
		for ((i = 0; i < 200; i++)); do
			lives "$pid" "$comm" || break
			sleep 0.05
		done
		! lives "$pid" "$comm" || kill -9 "$pid"
		say "$1 stopped"
	fi
	rm -f "$RUN/$1.pid" "$RUN/$1.mark"
}

# await NAME SECONDS CMD...: wait until CMD succeeds; fail at once when the
# daemon NAME died, with the end of what it said.
await() {
	local name=$1 seconds=$2 tries
	shift 2
	for ((tries = seconds * 10; tries > 0; tries--)); do
		! "$@" >/dev/null 2>&1 || return 0
		# The process is called env or setpriv for a moment: only one that is gone has failed.
		[ -d "/proc/$(cut -d' ' -f1 "$RUN/$name.pid")" ] || break
		sleep 0.1
	done
	tail -n 15 "$LOG/$name.out" "$LOG/$name.log" >&2 2>/dev/null || true
	die 1 "$REL: $name did not come up (logs: $LOG)"
}

# listens PORT: something accepts on that port of loopback.
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
