# Fetch, verify and unpack the code into $TP_RUN_DIR/code. Stock tools only.
# Exit: 65 an object is corrupt, 69 the store cannot be reached, 73 no space or
# right to write, 127 a tool is missing.
tp_fetch_bundle() (
	say() { printf 'tp: code: %s\n' "$*" >&2; }
	die() { local status=$1; shift; say "$@"; exit "$status"; }
	unpacked() { [ -f code/.tp-bundle ] && [ "$(cat code/.tp-bundle)" = "$tp_bundle_digest" ]; }

	cd -- "$TP_RUN_DIR" || die 69 "the run directory $TP_RUN_DIR is not there; is it mounted on $(uname -n)?"
	here=$PWD
	unpacked && exit 0
	set -o pipefail
	unset TAR_OPTIONS POSIXLY_CORRECT
	export LC_ALL=C

	tools=(cat cp mktemp mv rm sed sha256sum tar xargs zstd)
	[ "$tp_bundle_kind" = dir ] || tools+=(curl)
	for tool in "${tools[@]}"; do
		command -v "$tool" >/dev/null || die 127 "$(uname -n) has no $tool; add it to PATH in the prolog lines of the job"
	done
	sums=$here/bundle.sha256
	[ -s "$sums" ] || die 69 "$sums is not there"

	# One directory per attempt of a job; what a killed attempt left is removed.
	id=${SLURM_JOB_ID:-local$$}.${SLURM_RESTART_COUNT:-0}
	new=code.$id.tmp
	objects=$(mktemp -d "${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/tp-bundle.XXXXXXXX") || die 73 "cannot make a directory in ${SLURM_TMPDIR:-${TMPDIR:-/tmp}} on $(uname -n)"
	trap 'rm -rf -- "$objects" "$here/$new"' EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM

	if [ "$tp_bundle_kind" = dir ]; then
		# <first two characters>/<name>, see store.Path
		[ -d "$tp_bundle_dir" ] || die 69 "the object store $tp_bundle_dir is not there; is it mounted on $(uname -n)?"
		(cd -- "$tp_bundle_dir" && sed 's|^[0-9a-f]*  \(..\)|\1/\1|' "$sums" | xargs cp -t "$objects" --) ||
			die 69 "objects could not be copied from $tp_bundle_dir to $objects"
	else
		[ -r bundle.curl ] || die 69 "$here/bundle.curl is not there or not readable"
		parallel=()
		if curl -q --parallel --no-progress-meter --version >/dev/null 2>&1; then
			parallel=(--parallel --parallel-max 8 --no-progress-meter)
		fi
		status=0
		(cd -- "$objects" && curl -q --fail --silent --show-error --retry 5 --connect-timeout 30 \
			--speed-limit 1 --speed-time 120 "${parallel[@]+"${parallel[@]}"}" -K "$here/bundle.curl") || status=$?
		if [ "$status" != 0 ]; then
			read -r _ _ expires <bundle.curl
			[ "$(printf '%(%s)T' -1)" -lt "$expires" ] ||
				die 69 "the download links expired at $(printf '%(%F %T %Z)T' "$expires"): resume the run, which makes new ones"
			[ "$status" != 22 ] || die 69 "the object store refused a download; the links were made with a key that may not read it, or that was revoked"
			[ "$status" != 23 ] || die 73 "cannot write to $objects on $(uname -n)"
			die 69 "the object store cannot be reached from $(uname -n) (curl exit status $status)"
		fi
	fi

	if ! bad=$(cd -- "$objects" && sha256sum --quiet --strict -c "$sums" 2>&1); then
		die 65 "objects do not have the digests of $sums:"$'\n'"${bad:0:1000}"
	fi
	rm -rf -- "$new"
	mkdir -- "$new" || die 73 "cannot make $here/$new"
	(cd -- "$objects" && sed 's|^[0-9a-f]*  ||' "$sums" | xargs cat --) | zstd -dcq | tar -x -p --no-same-owner -f - -C "$new" ||
		die 73 "cannot unpack into $here/$new"
	printf '%s\n' "$tp_bundle_digest" >"$new/.tp-bundle" || die 73 "cannot write to $here/$new"

	# Another task of the job may unpack the same code now: who comes second
	# uses it. Other code, of an earlier attempt, is moved away.
	for try in 1 2 3 4 5; do
		if mv -T -- "$new" code 2>/dev/null; then exit 0; fi
		if unpacked; then exit 0; fi
		mv -T -- code "code.before.$id.$try" 2>/dev/null || true
	done
	die 73 "cannot rename $here/$new to code"
)
tp_fetch_bundle || exit $?
