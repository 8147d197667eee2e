# shellcheck shell=bash disable=SC2034 # the parts share their variables
# Accounts, users and QOS: one of each kind of limit a job can run into.

# make_accounts: idempotent, and skipped when the last time asked for the same.
make_accounts() {
	local script mark
	script=$(accounts_script)
	mark=$(sha256sum <<<"$script")
	[ ! -s "$HOME_DIR/accounts.mark" ] || [ "$(<"$HOME_DIR/accounts.mark")" != "$mark" ] || return 0
	# One sacctmgr for all lines: each process of its own costs a third of a second.
	in_world sacctmgr -i <<<"$script" >"$LOG/accounts.out" 2>&1 || true
	in_world sacctmgr -n -P show assoc "user=$USER_NAME" format=qos | grep -q deny4 || {
		tail -n 20 "$LOG/accounts.out" >&2
		die 1 "$REL: sacctmgr did not make the accounts (log: $LOG/accounts.out)"
	}
	echo "$mark" >"$HOME_DIR/accounts.mark"
	say "accounts and QOS made"
}

accounts_script() {
	cat <<-E
		add qos low Priority=0
		add qos graced Priority=0 GraceTime=20
		add qos high Priority=1000
		modify qos where name=high set Preempt=low,graced
		add qos gpu4 MaxTRESPerUser=gres/gpu=4
		add qos onejob MaxJobsPerUser=1
		add qos tiny GrpTRESMins=gres/gpu=1
		add qos submit2 MaxSubmitJobsPerUser=2
		add qos short30 MaxWall=00:30:00
		add qos deny4 MaxTRESPerJob=gres/gpu=4 Flags=DenyOnLimit
		add qos secret
		modify qos where name=low set GraceTime=$PREEMPT_GRACE
		add account research Description=research Organization=lab
		add account science Description=science Organization=lab
		add account vip Description=vip Organization=lab
	E
	local name
	for name in $(ordinary_users) root; do
		echo "add user $name Account=research DefaultAccount=research"
		echo "add user $name Account=science"
	done
	cat <<-E
		add user bob Account=vip
		modify account research,science set qos=normal,high,low,graced,gpu4,onejob,tiny,submit2,short30,deny4
	E
}
