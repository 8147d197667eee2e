# One task per node; torchrun starts the processes of its node and meets the
# others at the head. The attempt is part of the meeting's id, so that a
# requeued job never meets what is left of its former life.
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
  --nnodes="$TP_NNODES" --nproc_per_node="$tp_procs" \
  --rdzv_id="$TP_RUN_ID-$TP_RESTART" --rdzv_backend=c10d \
  --rdzv_endpoint="$TP_ROLE_TRAIN_HEAD:$TP_ROLE_TRAIN_PORT" \
  "${tp_old[@]+"${tp_old[@]}"}" "$tp_script" --config config.yaml --output-dir "$TP_OUT_DIR" --overrides-json "$tp_overrides"
