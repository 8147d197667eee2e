# shellcheck shell=bash disable=SC2034 # the parts share their variables
# What users get: the site file of a release, its environment, commands in it.

# write_site: tp's site file, the same text inside the chroot. No secret is in it.
write_site() {
	mkdir -p "$SHARED/runs/$REL" # ids of jobs and runs mean nothing in another cluster
	chmod 1777 "$SHARED/runs/$REL"
	site_text >"$SITE.new"
	chmod 644 "$SITE.new"
	mv "$SITE.new" "$SITE"
	if [ -n "$ROOT" ]; then
		mkdir -p "$ROOT$DIR"
		cp "$SITE" "$ROOT$SITE"
	fi
}

site_text() {
	printf 'default_fleet = "devlab"\nrun_root = "%s"\n\n[objects]\n' "$SHARED/runs/$REL"
	if s3_running; then
		cat <<-E
			kind = "s3"
			endpoint = "http://127.0.0.1:$(s3_port)"
			bucket = "$S3_BUCKET"
			region = "$S3_REGION"
			credentials = "$S3_CREDENTIALS"
		E
	else
		printf 'kind = "dir"\npath = "%s"\n' "$SHARED/objects"
	fi
	local series
	if [ -e "$RUN/rest-unix.pid" ]; then
		cat <<-E

			[fleets.devlab]
			kind = "slurm"
			url = "unix://$SOCKETS/$(<"$HOME_DIR/user")/rest.sock"

			[fleets.devlab-jwt]
			kind = "slurm"
			url = "http://127.0.0.1:$(port slurmrestd)"
			token_command = ["scontrol", "token"]
		E
	else
		printf '\n[fleets.devlab]\nkind = "slurm"\n'
	fi
	for series in h200 h100; do
		cat <<-E

			[series.$series]
			gres = "gpu:$series"
			devices = 8
			cpus = 64
			memory = "1000000M"
			partitions = ["$series"]
		E
	done
	cat <<-E

		[series.cpu]
		cpus = 64
		memory = "256000M"
		partitions = ["cpu"]
	E
}

# rewrite_sites: after the S3 server came or went.
rewrite_sites() {
	local release
	for release in $(made_releases); do
		select_release "$release"
		[ ! -e "$SITE" ] || write_site
	done
}

show_env() {
	select_release "${1:-$(system_release)}"
	[ -e "$SITE" ] || die 1 "$REL was never up here: devcluster up $REL"
	[ -z "$ROOT" ] || echo "# this release lives in $ROOT: its commands run through devcluster exec $REL"
	printf 'export SLURM_CONF=%q\nexport TP_SITE=%q\n' "$SLURM_CONF" "$SITE"
}

# exec_in_release USER CMD...: with a clean environment, in the same directory
# when it exists there. The user may do so himself where no chroot is needed.
exec_in_release() {
	local user=$1 home switch=()
	shift
	[ -s "$HOME_DIR/user" ] || die 1 "$REL was never up here: devcluster up $REL"
	[ -n "$user" ] || user=$(<"$HOME_DIR/user")
	home=$SHARED/home/$user
	[ "$user" != root ] || home=/root
	if [ "$(id -u)" = 0 ]; then
		switch=(setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups)
	elif [ -n "$ROOT" ] || [ "$(id -un)" != "$user" ]; then
		die 2 "exec as $user in ${ROOT:-this system} needs root: run it with sudo"
	fi
	[ -z "$ROOT" ] || switch=(chroot "$ROOT" "${switch[@]}")
	# shellcheck disable=SC2016 # for the shell inside
	exec "${switch[@]}" env -i "HOME=$home" "USER=$user" "LOGNAME=$user" "PATH=$CONTROL_PATH" \
		LANG=C.UTF-8 "SLURM_CONF=$SLURM_CONF" "TP_SITE=$SITE" \
		sh -c 'cd "$0" 2>/dev/null || cd; exec "$@"' "$PWD" "$@"
}

show_status() {
	local release name up
	for release in $(made_releases); do
		select_release "$release"
		up=''
		for name in munged mariadbd slurmdbd slurmctld "${NODES[@]/#/slurmd-}" rest-unix rest-jwt; do
			! running "$name" || up+=" $name"
		done
		if [ -z "$up" ]; then
			printf '%s  down   Slurm %s\n' "$REL" "$(cat "$HOME_DIR/version" 2>/dev/null)"
			continue
		fi
		printf '%s  up     Slurm %s in %s\n' "$REL" "$(<"$HOME_DIR/version")" "${ROOT:-this system}"
		printf '       daemons  %s\n' "${up# }"
		printf '       site     %s\n' "$SITE"
		[[ $up != *rest-* ]] || printf '       rest     unix:%s/%s/rest.sock http://127.0.0.1:%s\n' \
			"$SOCKETS" "$(<"$HOME_DIR/user")" "$(port slurmrestd)"
	done
	if s3_running; then
		printf 's3     up     http://127.0.0.1:%s bucket %s\n' "$(s3_port)" "$S3_BUCKET"
	else
		printf 's3     down\n'
	fi
}
