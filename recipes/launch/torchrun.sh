# One task per node; torchrun starts the processes of its node and meets the
# others at the head. The attempt is part of the meeting's id, so that a
# requeued job never meets what is left of its former life.
if [ -z "$tp_procs" ]; then
  tp_procs=${TP_GPUS_PER_NODE:-0}
  if [ "$tp_procs" -eq 0 ]; then tp_procs=1; fi
fi
exec python3 -m torch.distributed.run \
  --nnodes="$TP_NNODES" --nproc-per-node="$tp_procs" \
  --rdzv-id="$TP_RUN_ID-$TP_RESTART" --rdzv-backend=c10d \
  --rdzv-endpoint="$TP_ROLE_TRAIN_HEAD:$TP_ROLE_TRAIN_PORT" \
  "$tp_script" --config config.yaml --output-dir "$TP_OUT_DIR" --overrides-json "$tp_overrides"
