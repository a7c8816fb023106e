#!/bin/sh
# Run online-svm with the machine code of the image. numba reads kept code only where it could write
# it, and the root of a container is read-only, so the code is copied into /tmp first.
kept=/opt/online-svm/machine-code
if [ -d "$kept" ] && [ ! -e "$NUMBA_CACHE_DIR" ]; then
    cp -r "$kept" "$NUMBA_CACHE_DIR" || echo "the kept machine code cannot be used: it is compiled again" >&2
fi
exec online-svm "$@"
