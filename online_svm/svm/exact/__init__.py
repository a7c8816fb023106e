"""Exact kernel support vector machines over a stream: SMO that adds and forgets examples.

`rolling_machine` is what others use. Below it, by the steps of the method:

    kernel cache rows          kernel_cache
    working set selection      smo (all variables), pair_steps (active variables)
    pair update                smo, pair_steps; common_shift moves many variables at once
    shrinking, active set      active_set, active_set_solver
    Newton step                newton_step, batch_solver
    incremental add, forget    add_points, forget_points
    warm start                 warm_start
    state and its arrays       machine_state, held_points, bank_reference
"""
