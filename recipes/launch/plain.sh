# The role's own script takes the place of this shell, so that signals reach it.
exec bash "./$tp_script"
