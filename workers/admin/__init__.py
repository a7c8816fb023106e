"""Operations on feeds from outside a worker: status, fork, reset, verify, repair, restore."""
