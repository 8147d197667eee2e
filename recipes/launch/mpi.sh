# srun starts the processes itself, and MPI learns its ranks from PMIx: no
# mpirun, no host file, no ssh between nodes.
exec "${tp_command[@]}"
