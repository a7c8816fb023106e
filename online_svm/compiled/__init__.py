"""How kernels are compiled, and what compiled code shares."""
