"""Many feeds in a process, and their placement on machines."""
