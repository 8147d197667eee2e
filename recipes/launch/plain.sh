# The command takes the place of this shell, so that signals reach it.
exec "${tp_command[@]}"
