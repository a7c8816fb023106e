"""Operations on feeds from outside a worker: fork, reset, verify, repair, restore, erase."""
