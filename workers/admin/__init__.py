"""Operations on a feed outside its worker: backup, restore, fork, verify, repair, erase, notes."""
