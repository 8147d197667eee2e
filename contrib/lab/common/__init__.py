"""Code that several experiments share. tp ships it with every job, next to the experiment's own directory."""
