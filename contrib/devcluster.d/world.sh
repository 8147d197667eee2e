# shellcheck shell=bash disable=SC2034 # the parts share their variables
# The world a release lives in: this system when it packages that release,
# else a debootstrap folder with the Debian suite that does.

PACKAGES=(slurmctld slurmd slurmrestd slurmdbd slurm-client slurm-wlm-basic-plugins
	slurm-wlm-jwt-plugin slurm-wlm-mysql-plugin munge mariadb-server
	curl iproute2 procps git python3 zstd tar ca-certificates)

# make_world: packages, mounts and users are there afterwards; sets VERSION.
# Where a release lives is decided once: its files belong to that world's users.
make_world() {
	if [ -e "$HOME_DIR/root" ]; then
		[ -n "$ROOT" ] || [ -z "$WITH_CHROOT" ] ||
			die 2 "$REL lives in this system already: devcluster down $REL --purge, then up --chroot"
	elif [ -z "$WITH_CHROOT" ] && [ "$(system_release)" = "$REL" ]; then
		ROOT=''
	else
		[ -n "$SUITE" ] || not_run "no Debian suite known here has it, and this system packages Slurm $(system_release)"
		ROOT=$DIR/chroot-$SUITE
	fi
	if [ -z "$ROOT" ]; then host_name_is_loopback; else make_chroot; fi
	set_world
	mkdir -p "$HOME_DIR"
	echo "$ROOT" >"$HOME_DIR/root"
	[ -z "$ROOT" ] || mount_chroot
	install_packages
	VERSION=$(in_world slurmctld -V | awk '{print $2}')
	say "Slurm $VERSION in ${ROOT:-this system}"
	[ "${VERSION%.*}" = "$REL" ] || say "note: $SUITE brings $VERSION now, not $REL"
	make_users
}

# not_run REASON: this release cannot be had here; the rest can go on.
not_run() {
	printf 'not run: %s: %s\n' "$REL" "$*" >&2
	exit 4
}

# host_name_is_loopback: with NoInAddrAny daemons and srun listen on the address
# of the host name, which therefore has to be a loopback one.
host_name_is_loopback() {
	local name found
	name=$(hostname)
	found=$(getent ahostsv4 "$name" | awk 'NR == 1 {print $1}')
	case $found in
	127.*) ;;
	'')
		echo "127.0.0.1 $name" >>/etc/hosts
		say "added '127.0.0.1 $name' to /etc/hosts"
		;;
	*) die 2 "the host name $name is $found, so Slurm would listen there: put a line '127.0.0.1 $name' first in /etc/hosts" ;;
	esac
}

# debian_mirror: what apt uses here; empty lets debootstrap take its own default.
debian_mirror() {
	if [ -n "${TP_DEVCLUSTER_MIRROR:-}" ]; then
		echo "$TP_DEVCLUSTER_MIRROR"
	else
		# shellcheck disable=SC2016 # apt's own variables
		apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
			awk '$1 == "Debian" && $2 !~ /security/ {print $2; exit}'
	fi
}

# borrow_chroot: the packages of another instance, so that a second one of the
# same release costs seconds and no disk. Its state and its sockets stay apart.
borrow_chroot() {
	[ -n "${TP_DEVCLUSTER_BASE:-}" ] && [ -e "$TP_DEVCLUSTER_BASE/chroot-$SUITE/etc/debian_version" ] || return 0
	mkdir -p "$ROOT"
	mountpoint -q "$ROOT" && return
	mount --bind "$TP_DEVCLUSTER_BASE/chroot-$SUITE" "$ROOT"
	mount --make-private "$ROOT"
}

make_chroot() {
	borrow_chroot
	[ ! -e "$ROOT/etc/debian_version" ] || return 0
	apt_install debootstrap debian-archive-keyring
	remove_tree "$ROOT.new"
	mkdir -p "$DIR/cache/$SUITE"
	say "debootstrap $SUITE (a minute or more, once)"
	# shellcheck disable=SC2046 # no word when there is no mirror
	debootstrap --variant=minbase --include=ca-certificates --cache-dir="$DIR/cache/$SUITE" \
		"$SUITE" "$ROOT.new" $(debian_mirror) >"$DIR/log/debootstrap-$SUITE.log" 2>&1 </dev/null 9>&- ||
		not_run "debootstrap $SUITE failed: $(grep -E '^(E|W):' "$DIR/log/debootstrap-$SUITE.log" | tail -n 1) (log: $DIR/log/debootstrap-$SUITE.log)"
	mkdir -p "$ROOT.new/etc/apt/apt.conf.d"
	# sid's Release file is often past its date on mirrors that lag; the proxy is this system's.
	{
		echo 'Acquire::Check-Valid-Until "false";'
		apt-config dump 2>/dev/null | grep -E '^Acquire::(http|https)::Proxy ' || true
	} >"$ROOT.new/etc/apt/apt.conf.d/90devcluster"
	printf '#!/bin/sh\nexit 101\n' >"$ROOT.new/usr/sbin/policy-rc.d"
	chmod 755 "$ROOT.new/usr/sbin/policy-rc.d"
	mv "$ROOT.new" "$ROOT"
}

# mount_chroot: plain binds made private. An --rbind, or a shared one, would take
# the system's own /dev with it at the lazy umount.
mount_chroot() {
	mountpoint -q "$ROOT/proc" || mount -t proc proc "$ROOT/proc"
	local path
	for path in /dev /dev/pts /dev/shm "$SHARED" "$HOME_DIR"; do
		[ -d "$path" ] || continue
		mkdir -p "$ROOT$path"
		mountpoint -q "$ROOT$path" && continue
		mount --bind "$path" "$ROOT$path"
		mount --make-private "$ROOT$path"
	done
	cp /etc/resolv.conf "$ROOT/etc/resolv.conf"
	# Whatever the host name is outside: in here it is loopback.
	{
		printf '127.0.0.1 localhost\n127.0.0.1 %s\n' "$(hostname)"
		grep -vwE "localhost|$(hostname)" /etc/hosts || true
	} >"$ROOT/etc/hosts"
}

umount_chroot() {
	local path
	for path in "$HOME_DIR" "$SHARED" /dev/shm /dev/pts /dev /proc; do
		! mountpoint -q "$ROOT$path" || umount -l "$ROOT$path"
	done
	! mountpoint -q "$ROOT" || umount -l "$ROOT" # a borrowed one
}

# install_packages: what is missing, without letting apt start any daemon.
install_packages() {
	local log=$DIR/log/apt-$REL.log
	if [ -z "$ROOT" ]; then
		apt_install "${PACKAGES[@]}"
		return
	fi
	[ ! -e "$ROOT/.devcluster-packages" ] || [ "$(<"$ROOT/.devcluster-packages")" != "${PACKAGES[*]}" ] || return 0
	say "installing Slurm and MariaDB from $SUITE"
	{ in_world apt-get update -q && in_world apt-get install -y -q --no-install-recommends "${PACKAGES[@]}"; } \
		>"$log" 2>&1 </dev/null 9>&- || not_run "apt in $SUITE failed: $(grep '^E:' "$log" | tail -n 1) (log: $log)"
	in_world apt-get clean
	echo "${PACKAGES[*]}" >"$ROOT/.devcluster-packages"
}

# apt_install PACKAGE...: on this system.
apt_install() {
	local missing policy=/usr/sbin/policy-rc.d made=''
	mapfile -t missing < <(comm -23 <(printf '%s\n' "$@" | sort) \
		<(dpkg-query -W -f='${Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^.* ok installed //p' | sort))
	[ ${#missing[@]} -gt 0 ] || return 0
	say "apt-get install ${missing[*]}"
	if [ ! -e $policy ]; then
		printf '#!/bin/sh\nexit 101\n' >$policy
		chmod 755 $policy
		made=1
	fi
	local code=0
	{ apt-get update -q && apt-get install -y -q --no-install-recommends "${missing[@]}"; } \
		>"$DIR/log/apt-system.log" 2>&1 </dev/null 9>&- || code=$?
	[ -z "$made" ] || rm -f $policy
	[ "$code" = 0 ] || die 1 "apt-get install failed: $(grep '^E:' "$DIR/log/apt-system.log" | tail -n 1) (log: $DIR/log/apt-system.log)"
}

# make_users: the ordinary users, with the same ids in and outside, so that
# files in the shared folder belong to the same person.
make_users() {
	local name home
	[ "$USER_NAME" = alice ] || [ "$USER_NAME" = bob ] || id "$USER_NAME" >/dev/null 2>&1 ||
		die 2 "--user $USER_NAME: there is no such user"
	[ "$(id -u "$USER_NAME" 2>/dev/null)" != 0 ] || die 2 "--user $USER_NAME: slurmrestd does not run as root"
	for name in $(ordinary_users); do
		home=$SHARED/home/$name
		if ! id "$name" >/dev/null 2>&1; then
			useradd -M -d "$home" -s /bin/bash "$name" 9>&-
			echo "$name" >>"$DIR/made-users"
			say "user $name made"
		fi
		if [ ! -d "$home" ]; then
			mkdir "$home"
			chown "$name:" "$home"
			chmod 700 "$home"
		fi
		[ -z "$ROOT" ] || in_world id "$name" >/dev/null 2>&1 && continue
		in_world getent group "$(id -g "$name")" >/dev/null || in_world groupadd -g "$(id -g "$name")" "$(id -gn "$name")"
		in_world useradd -M -d "$home" -s /bin/bash -u "$(id -u "$name")" -g "$(id -g "$name")" "$name"
	done
	in_world id restd >/dev/null 2>&1 || in_world useradd -r -M -s /usr/sbin/nologin restd
}

ordinary_users() { printf '%s\n' alice bob "$USER_NAME" | awk '!seen[$0]++'; }

# remove_tree PATH: never across a mount, and only below our folder.
remove_tree() {
	case $1 in "$DIR"/?*) ;; *) die 1 "refusing to delete $1" ;; esac
	[ -e "$1" ] || return 0
	if awk -v p="$1/" 'index($5 "/", p) == 1 {found = 1} END {exit !found}' /proc/self/mountinfo; then
		die 1 "not deleting $1: something is mounted there (devcluster down $REL first)"
	fi
	rm -rf --one-file-system "$1"
}
