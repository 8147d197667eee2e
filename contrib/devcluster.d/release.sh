# shellcheck shell=bash disable=SC2034 # the parts share their variables
# Releases: which there are, where each lives, its ports, and one's options.

DIR=${TP_DEVCLUSTER_DIR:-/var/lib/tp-devcluster}
DIR=${DIR%/}
SHARED=$DIR/shared
# All ports stay below 32768, the floor of the ephemeral range: the kernel
# cannot hand one of them to an outgoing connection first.
PORT_BASE=${TP_DEVCLUSTER_PORT:-26000}
CONTROL_PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
NODES=(h200-1 h200-2 h100-1 h100-2 cpu-1 cpu-2)

# Options of up.
MAX_ARRAY_SIZE=10001
CRED_EXPIRE=5
PREEMPT_GRACE=0
SLURMD_TIMEOUT=300
WITH_DBD=1
WITH_REST=1
JOB_COMMENT=1
WITH_CHROOT=''
USER_NAME=${SUDO_USER:-alice}
[ "$USER_NAME" != root ] || USER_NAME=alice

# select_release RELEASE: sets REL and all that follows from it.
select_release() {
	REL=$1
	case $REL in
	22.05) SUITE=bookworm OFFSET=0 ;;
	24.11) SUITE=trixie OFFSET=1000 ;;
	26.05) SUITE=sid OFFSET=2000 ;;
	[0-9][0-9].[0-9][0-9]) SUITE='' OFFSET=3000 ;; # only where the system packages it
	*) die 2 "unknown release $REL: 22.05, 24.11 or 26.05" ;;
	esac
	CLUSTER=devlab${REL%.*}
	HOME_DIR=$DIR/$REL # the same path in and outside the chroot
	ETC=$HOME_DIR/etc RUN=$HOME_DIR/run LOG=$HOME_DIR/log
	SOCKETS=$SHARED/run/$REL
	SITE=$DIR/site-$REL.toml
	SLURM_CONF=$ETC/slurm.conf
	ROOT=''
	[ ! -s "$HOME_DIR/root" ] || ROOT=$(<"$HOME_DIR/root")
	set_world
}

# set_world: WORLD is the prefix of every command of this release.
set_world() {
	WORLD=(env -i "PATH=$CONTROL_PATH" HOME=/root LANG=C.UTF-8 LC_ALL=C.UTF-8
		DEBIAN_FRONTEND=noninteractive "SLURM_CONF=$SLURM_CONF")
	[ -z "$ROOT" ] || WORLD=(chroot "$ROOT" "${WORLD[@]}")
}
in_world() { "${WORLD[@]}" "$@"; }
as_user() { # as_user NAME CMD...
	in_world setpriv --reuid "$1" --regid "$(id -g "$1")" --init-groups "${@:2}"
}

# port SERVICE of the release at hand.
port() {
	local n
	case $1 in
	slurmctld) n=817 ;; slurmdbd) n=819 ;; slurmrestd) n=820 ;; mariadb) n=306 ;;
	slurmd) n=900 ;; # + 1..6
	esac
	echo $((PORT_BASE + OFFSET + n))
}

# system_release: the Slurm that apt would install here, as 22.05.
system_release() {
	local version
	version=$(LC_ALL=C apt-cache policy slurmctld 2>/dev/null | awk '/Candidate:/ {print $2}')
	if [ -z "$version" ] || [ "$version" = '(none)' ]; then
		apt-get update -q >/dev/null 2>&1 </dev/null || true
		version=$(LC_ALL=C apt-cache policy slurmctld 2>/dev/null | awk '/Candidate:/ {print $2}')
	fi
	version=${version#*:}
	case $version in
	[0-9][0-9].[0-9][0-9].*) echo "${version:0:5}" ;;
	*) echo 22.05 ;; # in a debootstrap folder, then
	esac
}

# made_releases: those that have state here.
made_releases() {
	local d
	for d in "$DIR"/[0-9][0-9].[0-9][0-9]; do
		[ ! -d "$d/etc" ] || basename "$d"
	done
}

need_debian() {
	local name='' id=''
	if [ -r /etc/os-release ]; then
		# shellcheck source=/dev/null
		name=$(. /etc/os-release && echo "${PRETTY_NAME:-}")
		# shellcheck source=/dev/null
		id=$(. /etc/os-release && echo "${ID:-} ${ID_LIKE:-}")
	fi
	case " $id " in
	*' debian '* | *' ubuntu '*) ;;
	*) die 2 "needs Debian or Ubuntu and their Slurm packages, found ${name:-an unknown system}: use a Debian 12 machine or container" ;;
	esac
	((PORT_BASE >= 1024 && PORT_BASE <= 28800)) ||
		die 2 "TP_DEVCLUSTER_PORT must be 1024 to 28800, found $PORT_BASE"
}

make_folders() {
	mkdir -p "$DIR/log" "$DIR/bin" "$SHARED/run" "$SHARED/home" "$SHARED/runs" "$SHARED/objects"
	chmod 755 "$DIR" "$SHARED/run" "$SHARED/home"
	chmod 1777 "$SHARED" "$SHARED/runs" "$SHARED/objects"
	: >"$DIR/.tp-devcluster" # purge deletes only a folder that has this
}
