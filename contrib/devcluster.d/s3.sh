# shellcheck shell=bash disable=SC2034 # the parts share their variables
# A real S3 server on loopback: versitygw over a folder, pinned in contrib/tools.

S3_BUCKET=tuneplane
S3_REGION=us-east-1
S3_CREDENTIALS=$SHARED/s3-credentials

s3_port() { echo $((PORT_BASE + 1070)); }

# The S3 server is no release: it has its own folder and lives on this system.
s3_select() {
	REL=s3 ROOT='' SLURM_CONF=/dev/null
	HOME_DIR=$DIR/s3 RUN=$DIR/s3/run LOG=$DIR/s3/log
	set_world
}
s3_running() { (s3_select && running versitygw); }

cmd_s3() {
	need_root s3
	case ${1:-up} in
	up) s3_up ;;
	down) s3_down ;;
	*) die 2 "s3: up or down, found $1" ;;
	esac
}

s3_up() {
	local binary user=$USER_NAME mark
	make_folders
	s3_select
	lock_release
	binary=$(s3_binary)
	mkdir -p "$RUN" "$LOG" "$HOME_DIR/data"
	# The owner stays who it was at first: the objects are his.
	[ ! -s "$HOME_DIR/user" ] || user=$(<"$HOME_DIR/user")
	id "$user" >/dev/null 2>&1 || die 2 "there is no user $user yet: devcluster up first"
	echo "$user" >"$HOME_DIR/user"
	chown "$user:" "$HOME_DIR/data"
	chmod 700 "$HOME_DIR/data"
	if [ ! -s "$S3_CREDENTIALS" ]; then
		(
			umask 077
			printf '[default]\naws_access_key_id=TP%s\naws_secret_access_key=%s\n' \
				"$(random_hex 9)" "$(random_hex 20)" >"$S3_CREDENTIALS"
		)
		chown "$user:" "$S3_CREDENTIALS"
	fi
	# The keys go through the environment: a command line can be read by everyone.
	export ROOT_ACCESS_KEY ROOT_SECRET_KEY
	ROOT_ACCESS_KEY=$(awk -F= '$1 == "aws_access_key_id" {print $2}' "$S3_CREDENTIALS")
	ROOT_SECRET_KEY=$(awk -F= '$1 == "aws_secret_access_key" {print $2}' "$S3_CREDENTIALS")
	WORLD=(setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups)
	mark=$(sha256sum <"$S3_CREDENTIALS")
	if FINGERPRINT=$mark start_daemon versitygw "$binary" --port "127.0.0.1:$(s3_port)" \
		--region "$S3_REGION" --quiet --keep-alive posix "$HOME_DIR/data"; then
		await versitygw 20 listens "$(s3_port)"
		[ -d "$HOME_DIR/data/$S3_BUCKET" ] || s3_make_bucket
		say "s3 up on 127.0.0.1:$(s3_port), bucket $S3_BUCKET"
	fi
	rewrite_sites
}

# s3_make_bucket: as S3 does it, for the server keeps the owner with the bucket.
s3_make_bucket() {
	# curl 7.88 signs the body's digest but does not send it.
	curl -sS --fail-with-body -X PUT -H "x-amz-content-sha256: $(sha256sum </dev/null | cut -d' ' -f1)" \
		--aws-sigv4 "aws:amz:$S3_REGION:s3" -K - "http://127.0.0.1:$(s3_port)/$S3_BUCKET" >"$LOG/bucket.out" 2>&1 \
		<<<"user = \"$ROOT_ACCESS_KEY:$ROOT_SECRET_KEY\"" ||
		die 1 "s3: could not make the bucket: $(<"$LOG/bucket.out")"
}

s3_down() {
	[ -d "$DIR/s3" ] || return 0
	s3_select
	stop_daemon versitygw
	rewrite_sites
}

# s3_binary: built once per pinned version.
s3_binary() {
	local version binary
	version=$(awk '$1 == "github.com/versity/versitygw" {print $2}' "$HERE/tools/go.mod")
	binary=$DIR/bin/$version/versitygw
	if [ ! -x "$binary" ]; then
		local go
		go=$(command -v go || echo /usr/local/go/bin/go)
		[ -x "$go" ] || die 2 "s3 needs Go to build its server: put go on the PATH (sudo drops it: sudo env PATH=\"\$PATH\" ...)"
		say "building versitygw $version (some minutes, once)"
		CGO_ENABLED=0 "$go" -C "$HERE/tools" build -trimpath -ldflags '-s -w' -o "$binary" \
			github.com/versity/versitygw/cmd/versitygw >"$DIR/log/versitygw.log" 2>&1 </dev/null 9>&- ||
			die 1 "s3: go build failed (log: $DIR/log/versitygw.log)"
	fi
	echo "$binary"
}

random_hex() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }
