# shellcheck shell=bash disable=SC2034 # the parts share their variables
# Starting and stopping one release, in the order its parts need each other.

up_one() {
	select_release "$1"
	lock_release
	check_lengths
	make_world
	write_config
	printf '%s\n' "$VERSION" >"$HOME_DIR/version"
	printf '%s\n' "$USER_NAME" >"$HOME_DIR/user"
	start_munge
	if [ -n "$WITH_DBD" ]; then
		start_database
		start_slurmdbd
	fi
	start_slurmctld
	start_slurmd
	if [ -n "$WITH_DBD" ]; then
		make_accounts # not before slurmctld: it is what makes gres/gpu known to the database
	else
		stop_daemon slurmdbd
		stop_daemon mariadbd
	fi
	if [ -n "$WITH_REST" ]; then
		start_rest
	else
		stop_daemon rest-unix
		stop_daemon rest-jwt
	fi
	write_site
	say "$REL ready: $0 exec $REL sinfo"
}

# lock_release: one devcluster at a time. The daemons do not inherit it (9>&-).
lock_release() {
	exec 9>"$DIR/log/lock-$REL"
	flock -n 9 || { say "$REL: waiting for another devcluster" && flock 9; }
}

# check_lengths: a unix socket's path has at most 107 bytes.
check_lengths() {
	local path=$SOCKETS/$USER_NAME/rest.sock
	[ ${#path} -le 107 ] || die 2 "TP_DEVCLUSTER_DIR is too long: $path has ${#path} bytes, a unix socket at most 107"
}

start_munge() {
	FINGERPRINT='' start_daemon munged setpriv --reuid munge --regid munge --clear-groups \
		munged --foreground --key-file="$HOME_DIR/munge/munge.key" --socket="$HOME_DIR/munge/munge.socket" \
		--pid-file="$HOME_DIR/munge/munged.pid" --log-file="$HOME_DIR/munge/munged.log" \
		--seed-file="$HOME_DIR/munge/munged.seed" --force || return 0
	await munged 10 in_world munge -S "$HOME_DIR/munge/munge.socket" -n
	say "munged up"
}

start_database() {
	local data=$HOME_DIR/mysql
	if [ ! -d "$data/mysql" ]; then
		in_world mariadb-install-db --no-defaults --user=mysql --datadir="$data" --skip-test-db \
			--auth-root-authentication-method=socket >"$LOG/mysql-install.log" 2>&1 9>&- ||
			die 1 "$REL: mariadb-install-db failed (log: $LOG/mysql-install.log)"
	fi
	# From MariaDB 11.6.2 on slurmdbd's transactions fail under that option's new
	# default; "loose" lets older ones, which do not know it, ignore it.
	# Nothing here has to survive a power cut: no flush at every commit.
	start_daemon mariadbd mariadbd --no-defaults --user=mysql --datadir="$data" --socket="$data/m.sock" \
		--pid-file="$data/m.pid" --bind-address=127.0.0.1 --port="$(port mariadb)" \
		--loose-innodb-snapshot-isolation=OFF \
		--innodb-flush-log-at-trx-commit=0 --innodb-buffer-pool-size=128M --innodb-lock-wait-timeout=900 --innodb-log-file-size=32M || return 0
	await mariadbd 60 in_world mariadb --no-defaults -S "$data/m.sock" -e 'select 1'
	in_world mariadb --no-defaults -S "$data/m.sock" <<-E
		create database if not exists slurm_acct;
		create user if not exists 'slurm'@'127.0.0.1' identified by 'devcluster';
		create user if not exists 'slurm'@'localhost' identified by 'devcluster';
		grant all on slurm_acct.* to 'slurm'@'127.0.0.1';
		grant all on slurm_acct.* to 'slurm'@'localhost';
	E
	say "mariadbd up"
}

start_slurmdbd() {
	FINGERPRINT=$(<"$ETC/slurmdbd.conf") start_daemon slurmdbd \
		setpriv --reuid slurm --regid slurm --clear-groups slurmdbd -D || return 0
	await slurmdbd 90 listens "$(port slurmdbd)"
	# slurmctld stops at its first start when the database does not know the cluster.
	in_world sacctmgr -i add cluster "$CLUSTER" >"$LOG/cluster.out" 2>&1 || true
	say "slurmdbd up"
}

# slurmctld and slurmd read all of slurm.conf at their start: jobs go on through a restart.
slurm_fingerprint() { cat "$ETC/slurm.conf" "$ETC/gres.conf" "$ETC/cgroup.conf"; }

start_slurmctld() {
	FINGERPRINT=$(slurm_fingerprint) start_daemon slurmctld slurmctld -D || return 0
	await slurmctld 30 controller_answers
	say "slurmctld up"
}
controller_answers() { in_world scontrol ping | grep -q UP; }

start_slurmd() {
	local node started=''
	for node in "${NODES[@]}"; do
		! COMM=slurmd FINGERPRINT=$(slurm_fingerprint) start_daemon "slurmd-$node" slurmd -D -N "$node" || started=1
	done
	[ -n "$started" ] || return 0
	await "slurmd-${NODES[0]}" 60 nodes_registered
	# A node that was down or drained when it stopped is so still: that is kept in the state.
	for node in $(in_world sinfo -h -N -o '%N %t' | awk '$2 ~ /^(drain|down)/ {print $1}' | sort -u); do
		in_world scontrol update "nodename=$node" state=resume || true
	done
	say "6 slurmd up"
}
nodes_registered() {
	[ "$(in_world sinfo -h -N -o '%N %t' | sort -u | grep -cE ' (idle|mix|alloc|comp|drain|drng|maint|resv)$')" = 6 ]
}

# start_rest_jwt PLUGINS...: one that replaces another finds the port taken for a
# while, by the other's listener or by its connections in TIME_WAIT, and ends.
start_rest_jwt() {
	local tries at replaces=''
	! running rest-jwt || replaces=1
	at=$(port slurmrestd)
	for ((tries = 0; tries < 35; tries++)); do
		COMM=slurmrestd FINGERPRINT=$(slurm_fingerprint) start_daemon rest-jwt \
			setpriv --reuid restd --regid restd --clear-groups env SLURM_JWT=daemon \
			slurmrestd -a rest_auth/jwt "$@" "127.0.0.1:$at" || return 0
		[ -z "$replaces" ] || sleep 1
		if [ -d "/proc/$(cut -d' ' -f1 "$RUN/rest-jwt.pid")" ] || ! grep -q 'already in use' "$LOG/rest-jwt.out"; then break; fi
		[ "$tries" != 0 ] || say "port $at is not free yet"
		sleep 2
	done
	await rest-jwt 10 listens "$at"
	say "slurmrestd up on 127.0.0.1:$at"
}

start_rest() {
	local folder=$SOCKETS/$USER_NAME plugins=()
	# 22.05 ends at once when it loads the accounting plugins and there is no slurmdbd.
	if [ -z "$WITH_DBD" ]; then
		case $VERSION in 22.05.*) plugins=(-s openapi/v0.0.38) ;; *) plugins=(-s openapi/slurmctld) ;; esac
	fi
	mkdir -p "$SOCKETS"
	[ -d "$folder" ] || mkdir -m 700 "$folder"
	chown "$USER_NAME:" "$folder"
	chmod 700 "$folder"
	running rest-unix || rm -f "$folder/rest.sock"
	# slurmrestd makes its socket open to all: the folder is what keeps others out.
	if COMM=slurmrestd FINGERPRINT=$(slurm_fingerprint) start_daemon rest-unix \
		setpriv --reuid "$USER_NAME" --regid "$(id -g "$USER_NAME")" --init-groups \
		env "HOME=$SHARED/home/$USER_NAME" "USER=$USER_NAME" \
		slurmrestd -a rest_auth/local "${plugins[@]}" "unix:$folder/rest.sock"; then
		await rest-unix 10 curl -sf --unix-socket "$folder/rest.sock" http://localhost/openapi/v3
		say "slurmrestd up on $folder/rest.sock"
	fi
	start_rest_jwt "${plugins[@]}"
}

# down_release: its jobs first, for a step would outlive its slurmd.
down_release() {
	local name i
	[ -d "$RUN" ] || return 0
	lock_release
	if running slurmctld && [ -n "$(in_world timeout 5 squeue -h -t RUNNING,COMPLETING,SUSPENDED 2>/dev/null)" ]; then
		say "$REL: cancelling its running jobs"
		in_world timeout 5 scancel -t RUNNING || true
		for ((i = 0; i < 60; i++)); do
			[ -n "$(in_world timeout 5 squeue -h -t RUNNING,COMPLETING 2>/dev/null)" ] || break
			sleep 0.2
		done
	fi
	for name in rest-unix rest-jwt "${NODES[@]/#/slurmd-}" slurmctld slurmdbd mariadbd munged; do
		stop_daemon "$name"
	done
	rm -rf "$SOCKETS"
	[ -z "$ROOT" ] || umount_chroot
	say "$REL down"
}

purge_release() {
	remove_tree "$HOME_DIR"
	rm -f "$SITE" ${ROOT:+"$ROOT$SITE"}
	say "$REL: state deleted${ROOT:+ (its packages stay in $ROOT)}"
}

# purge_all: also the users made here, the debootstrap folders and every run.
purge_all() {
	[ -e "$DIR/.tp-devcluster" ] || die 1 "not deleting $DIR: it was not made by devcluster"
	local path name
	for path in "$DIR"/* "$DIR"/.[!.]*; do
		[ "$path" = "$DIR/made-users" ] || remove_tree "$path"
	done
	if [ -s "$DIR/made-users" ]; then
		while read -r name; do userdel "$name" || true; done <"$DIR/made-users"
	fi
	rm -f "$DIR/made-users"
	rmdir "$DIR"
	say "$DIR deleted"
}
