"""torch.distributed.run where a world has no torch: the options that the
launcher gives, and one process for each local rank."""
import os, sys
import standin

given, words = standin.options(sys.argv[1:], {
    "--nnodes": int, "--node_rank": int, "--nproc_per_node": int, "--rdzv_backend": str, "--master_addr": str, "--master_port": int,
})
standin.say("torchrun." + os.environ["TP_NODE_RANK"])
sys.exit(standin.processes(given["--nnodes"] * given["--nproc_per_node"], given["--nnodes"], given["--node_rank"], [sys.executable, *words]))
