# One accelerate launch per node; node 0 is where the others meet. What it shall
# do is all in its arguments and in a configuration of the recipe, or an empty
# one: without a file it would read ~/.cache/huggingface/accelerate of the user.
if [ -z "$tp_procs" ]; then
  tp_procs=${TP_GPUS_PER_NODE:-0}
  if [ "$tp_procs" -eq 0 ]; then tp_procs=1; fi
fi
tp_world=$((TP_NNODES * tp_procs))
if [ -z "$tp_config" ]; then
  tp_config=$TP_RUN_DIR/accelerate.$TP_NODE_RANK$TP_LOG_SUFFIX.yaml tp_kind=NO
  if [ "$tp_world" -gt 1 ]; then tp_kind=MULTI_GPU; fi
  printf 'compute_environment: LOCAL_MACHINE\ndistributed_type: %s\n' "$tp_kind" >"$tp_config"
fi
exec accelerate launch --config_file="$tp_config" \
  --num_machines="$TP_NNODES" --num_processes="$tp_world" --machine_rank="$TP_NODE_RANK" \
  --rdzv_backend=static --same_network --main_process_ip="$tp_ip" --main_process_port="$tp_port" \
  "${tp_target[@]}"
