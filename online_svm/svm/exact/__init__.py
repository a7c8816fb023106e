"""Exact kernel support vector machines over a stream: SMO that adds and forgets examples.

Other folders import `rolling_machine`, or `batch_solver` for programmes over fixed points. The C
files have the names of the steps of the method:

    cached kernel rows         kernel_cache
    working set selection      smo (all variables), pair_steps (active variables)
    pair update                smo, pair_steps; common_shift moves many variables at once
    shrinking, active set      active_set, active_set_solver
    Newton step                batch_solver
    incremental add, forget    add_points, forget_points
    warm start                 warm_start

Of the Python files, `machine_state` has the arrays of a machine, `held_points` assigns points to
slots of these arrays, and `batch_solver` solves programmes over fixed points.
"""
