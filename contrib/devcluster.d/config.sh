# shellcheck shell=bash disable=SC2034 # the parts share their variables
# The configuration of one release. The numbers are chosen for tests: a free
# GPU is seen within a second, a requeued job starts again after six. Without
# bf_hetjob_prio backfill plans the components of het jobs one by one, so two of
# different shapes may each hold what the other needs and wait for ever.

write_config() {
	mkdir -p "$ETC" "$RUN" "$LOG" "$HOME_DIR"/{state,state-nodbd,spool,munge,mysql,dev}
	chmod 755 "$HOME_DIR" "$ETC" "$RUN" "$LOG"
	in_world chown slurm:slurm "$RUN" "$LOG" "$HOME_DIR/state" "$HOME_DIR/state-nodbd"
	in_world chown munge:munge "$HOME_DIR/munge"
	in_world chown mysql:mysql "$HOME_DIR/mysql"
	new_key "$HOME_DIR/munge/munge.key" 128 munge
	new_key "$ETC/jwt_hs256.key" 32 slurm
	local i node
	for i in 0 1 2 3 4 5 6 7; do # a GRES needs a character device; one like /dev/null will do
		[ -c "$HOME_DIR/dev/nvidia$i" ] || mknod -m 666 "$HOME_DIR/dev/nvidia$i" c 1 3
	done
	for node in "${NODES[@]}"; do
		mkdir -p "$HOME_DIR/spool/$node"
		install -d -m 1777 "$HOME_DIR/tmp/$node"
	done
	slurm_conf >"$ETC/slurm.conf.new"
	mv "$ETC/slurm.conf.new" "$ETC/slurm.conf"
	cat >"$ETC/gres.conf" <<-E
		AutoDetect=off
		NodeName=h200-[1-2] Name=gpu Type=h200 File=$HOME_DIR/dev/nvidia[0-7]
		NodeName=h100-[1-2] Name=gpu Type=h100 File=$HOME_DIR/dev/nvidia[0-7]
	E
	# Nothing here uses cgroups, but slurmd looks for them, in a chroot in vain. Up to
	# 23.02 the plugin for version 1 is the one that looks only when it is used.
	case $REL in
	22.05 | 23.02) echo CgroupPlugin=cgroup/v1 ;;
	*) echo CgroupPlugin=disabled ;;
	esac >"$ETC/cgroup.conf"
	[ -z "$WITH_DBD" ] || slurmdbd_conf
}

new_key() { # new_key FILE BYTES OWNER
	[ ! -s "$1" ] || return 0
	(umask 077 && head -c "$2" /dev/urandom >"$1")
	in_world chown "$3:$3" "$1"
	chmod 400 "$1"
}

slurm_conf() {
	cat <<-E
		ClusterName=$CLUSTER
		SlurmctldHost=localhost(127.0.0.1)
		SlurmctldPort=$(port slurmctld)
		SlurmUser=slurm
		SlurmdUser=root
		AuthType=auth/munge
		AuthInfo=socket=$HOME_DIR/munge/munge.socket,cred_expire=$CRED_EXPIRE
		CredType=cred/munge
		AuthAltTypes=auth/jwt
		AuthAltParameters=jwt_key=$ETC/jwt_hs256.key
		CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
		SlurmdSpoolDir=$HOME_DIR/spool/%n
		TmpFS=$HOME_DIR/tmp/%n
		SlurmctldPidFile=$RUN/slurm-ctld
		SlurmdPidFile=$RUN/slurm-d-%n
		SlurmctldLogFile=$LOG/slurmctld.log
		SlurmdLogFile=$LOG/slurmd-%n.log
		SlurmctldDebug=info
		SlurmdDebug=info
		ProctrackType=proctrack/linuxproc
		MpiDefault=none
		MailProg=/bin/true
		RebootProgram=/bin/true
		JobAcctGatherType=jobacct_gather/linux
		JobAcctGatherFrequency=10
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core_Memory
		SchedulerType=sched/backfill
		SchedulerParameters=bf_interval=1,sched_interval=5,bf_continue,batch_sched_delay=0,sched_min_interval=0,bf_hetjob_prio=min,bf_hetjob_immediate
		PriorityType=priority/multifactor
		PriorityWeightAge=1000
		PriorityWeightJobSize=100
		PriorityWeightPartition=1000
		GresTypes=gpu
		Licenses=matlab:4,ansys:10
		ReturnToService=2
		SlurmdParameters=config_overrides
		MaxArraySize=$MAX_ARRAY_SIZE
		MaxJobCount=20000
		MinJobAge=300
		KillWait=5
	E
	[ "$SLURMD_TIMEOUT" = 300 ] || echo "SlurmdTimeout=$SLURMD_TIMEOUT"
	accounting_lines
	echo 'NodeName=DEFAULT Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=1000000 State=UNKNOWN'
	local i node what
	for i in "${!NODES[@]}"; do
		node=${NODES[i]}
		case $node in
		h200-*) what='Gres=gpu:h200:8 Feature=h200,hopper,ib' ;;
		h100-1) what='Gres=gpu:h100:8 Feature=h100,hopper,ib' ;;
		h100-*) what='Gres=gpu:h100:8 Feature=h100,hopper' ;;
		cpu-*) what='RealMemory=256000 Feature=cpu' ;;
		esac
		echo "NodeName=$node NodeHostname=localhost NodeAddr=127.0.0.1 Port=$(($(port slurmd) + i + 1)) $what"
	done
	cat <<-E
		PartitionName=DEFAULT State=UP MaxTime=7-00:00:00 DefaultTime=01:00:00 DefMemPerCPU=1000
		PartitionName=cpu Nodes=cpu-[1-2] Default=YES
		PartitionName=h200 Nodes=h200-[1-2] PriorityJobFactor=10
		PartitionName=h100 Nodes=h100-[1-2]
		PartitionName=short Nodes=h100-[1-2],cpu-[1-2] MaxTime=00:30:00 DefaultTime=00:10:00
		PartitionName=restricted Nodes=h200-[1-2] AllowAccounts=vip
	E
}

# accounting_lines: a state folder of its own for the case without accounting,
# since slurmctld keeps the ids of associations there.
accounting_lines() {
	if [ -z "$WITH_DBD" ]; then
		cat <<-E
			StateSaveLocation=$HOME_DIR/state-nodbd
			AccountingStorageType=accounting_storage/none
			PreemptType=preempt/none
			PreemptMode=OFF
		E
		return
	fi
	cat <<-E
		StateSaveLocation=$HOME_DIR/state
		AccountingStorageType=accounting_storage/slurmdbd
		AccountingStorageHost=127.0.0.1
		AccountingStoragePort=$(port slurmdbd)
		AccountingStoragePass=$HOME_DIR/munge/munge.socket
		AccountingStorageEnforce=associations,limits,qos,safe
		AccountingStorageTRES=gres/gpu,gres/gpu:h200,gres/gpu:h100,license/matlab
		PriorityWeightFairshare=1000
		PriorityWeightQOS=10000
		PreemptType=preempt/qos
		PreemptMode=REQUEUE
	E
	[ -z "$JOB_COMMENT" ] || echo AccountingStoreFlags=job_comment,job_env,job_script
	[ "$PREEMPT_GRACE" = 0 ] || case $REL in
	22.05) echo SlurmctldParameters=preempt_send_user_signal ;;
	*) echo PreemptParameters=send_user_signal ;; # its name from 23.02 on
	esac
}

slurmdbd_conf() {
	cat >"$ETC/slurmdbd.conf" <<-E
		AuthType=auth/munge
		AuthInfo=socket=$HOME_DIR/munge/munge.socket
		AuthAltTypes=auth/jwt
		AuthAltParameters=jwt_key=$ETC/jwt_hs256.key
		DbdHost=localhost
		DbdAddr=127.0.0.1
		DbdPort=$(port slurmdbd)
		CommunicationParameters=NoInAddrAny
		SlurmUser=slurm
		DebugLevel=info
		LogFile=$LOG/slurmdbd.log
		PidFile=$RUN/slurm-dbd
		StorageType=accounting_storage/mysql
		StorageHost=127.0.0.1
		StoragePort=$(port mariadb)
		StorageUser=slurm
		StoragePass=devcluster
		StorageLoc=slurm_acct
	E
	in_world chown slurm:slurm "$ETC/slurmdbd.conf"
	chmod 600 "$ETC/slurmdbd.conf"
}
