# One torchrun per node, which starts the processes of its node. Node 0 is where
# the others meet: by rank and not by the name of the host, which c10d compares
# and which fails behind a second interface. The port is this run's own, so that
# nothing of a former life of it, or of a neighbour, can be met there.
if [ -z "$tp_procs" ]; then
  tp_procs=${TP_GPUS_PER_NODE:-0}
  if [ "$tp_procs" -eq 0 ]; then tp_procs=1; fi
fi
# torch 1.13 on Python 3.11 (Debian 12) cannot read its own default "0" for
# these two: an enumeration no longer lists its zero. Rank 9 stands for nobody.
tp_old=()
if python3 -c 'import sys, importlib.metadata as m; sys.exit(not (sys.version_info >= (3, 11) and m.version("torch").startswith("1.")))' 2>/dev/null; then
  tp_old=(--redirects 9:1 --tee 9:1)
fi
# Underscores: torch 1.13 knows no dashes in these names, newer ones take both.
exec python3 -m torch.distributed.run \
  --nnodes="$TP_NNODES" --node_rank="$TP_NODE_RANK" --nproc_per_node="$tp_procs" \
  --rdzv_backend=static --master_addr="$tp_ip" --master_port="$tp_port" \
  "${tp_old[@]+"${tp_old[@]}"}" "${tp_target[@]}"
