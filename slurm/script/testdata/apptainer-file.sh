# ---- what each role runs, once per node of its pool --------------------------------
tp_role_0() { # train
command -v bash >/dev/null || { echo "tp: bash is not on the PATH of ${SLURMD_NODENAME:-$HOSTNAME}" >&2; exit 127; }
export TP_POOL=train TP_NNODES=1 TP_GPUS_PER_NODE=8
echo "train: $REWARDS on $CUDA_VISIBLE_DEVICES; rollout at $TP_ROLE_ROLLOUT_ADDRS"
sleep 3
}
tp_box_0() { # the container of train
command -v apptainer >/dev/null || { echo "tp: apptainer is not on the PATH of ${SLURMD_NODENAME:-$HOSTNAME}" >&2; exit 127; }
[ -r /images/verl_0123456789ab.sif ] || { echo "tp: the image /images/verl_0123456789ab.sif is not on ${SLURMD_NODENAME:-$HOSTNAME}" >&2; exit 66; }
export APPTAINERENV_REWARDS="${REWARDS-}"
exec apptainer exec --rocm \
  --bind /runs/ann/hello/run-0123456789ab:/runs/ann/hello/run-0123456789ab \
  /images/verl_0123456789ab.sif \
  bash -c "set -euo pipefail; $(declare -f tp_role_0); cd \"\$TP_EXP_DIR\"; tp_role_0"
}
tp_role_1() { # rollout
export TP_POOL=rollout TP_NNODES=2 TP_GPUS_PER_NODE=4
echo "rollout $TP_NODE_RANK: $REWARDS on $CUDA_VISIBLE_DEVICES"
trap 'echo bye; exit 0' TERM; sleep 60 & wait
}
tp_box_1() { # the container of rollout
command -v apptainer >/dev/null || { echo "tp: apptainer is not on the PATH of ${SLURMD_NODENAME:-$HOSTNAME}" >&2; exit 127; }
[ -r /images/verl_0123456789ab.sif ] || { echo "tp: the image /images/verl_0123456789ab.sif is not on ${SLURMD_NODENAME:-$HOSTNAME}" >&2; exit 66; }
export APPTAINERENV_REWARDS="${REWARDS-}"
exec apptainer exec --rocm \
  --bind /runs/ann/hello/run-0123456789ab:/runs/ann/hello/run-0123456789ab \
  /images/verl_0123456789ab.sif \
  bash -c "set -euo pipefail; $(declare -f tp_role_1); cd \"\$TP_EXP_DIR\"; tp_role_1"
}

# ---- where the pools and roles run -------------------------------------------------
tp_interface='' tp_family='' tp_ports=''
tp_pool train 1 2 srun --het-group=0 --job-name=tp-pool --overlap --mpi=none --kill-on-bad-exit=1 --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=1 --gres=none
tp_pool rollout 2 2 srun --het-group=1 --job-name=tp-pool --overlap --mpi=none --kill-on-bad-exit=1 --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=1 --gres=none
tp_meet_all
tp_place POOL train train 8
tp_place POOL rollout rollout 4
tp_place ROLE train train 8
tp_place ROLE rollout rollout 4

# ---- start the roles, wait for the driver or the first failure ---------------------
tp_start rollout srun --het-group=1 --job-name=rollout --overlap --mpi=none --kill-on-bad-exit=1 --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=32 --gres=gpu:h100:4 \
  bash -c "$(declare -f tp_role tp_role_1 tp_box_1); tp_role tp_box_1 rollout"
tp_start train srun --het-group=0 --job-name=train --overlap --mpi=none --kill-on-bad-exit=1 --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=64 --gres=gpu:h200:8 \
  bash -c "$(declare -f tp_role tp_role_0 tp_box_0); tp_role tp_box_0 train"
tp_rc=0
tp_wait || tp_rc=$?
exit "$tp_rc"
