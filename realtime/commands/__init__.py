"""What the `parley` command does, one file per verb; `realtime.cli` reads the arguments."""
