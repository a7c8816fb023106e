/* Cells: any value of a named row as one double; `cells.py` describes and makes them. */
#ifndef ONLINE_SVM_CELLS_H
#define ONLINE_SVM_CELLS_H

#include "compiled/floats.h"

#define MAX_FEATURE_SIZE 1e100 /* limit of numbers; texts, times and booleans are larger */

/* Prefix bits of a time and a boolean, and the mask of the hash of a text. */
#define TIME_BITS (INT64_C(0x70) << 56)
#define BOOLEAN_BITS (INT64_C(0x701) << 52)
#define HASH_MASK ((INT64_C(1) << 60) - 1)

/* A time cell has its milliseconds since 1970, between -BEFORE and AFTER, plus BEFORE. */
#define BEFORE (INT64_C(1) << 46)
#define AFTER (INT64_C(1) << 50)
#define MILLISECOND_MASK ((INT64_C(1) << 52) - 1)

#define FROM_MILLISECONDS 1e11 /* as times, numbers below it are seconds since 1970, others milliseconds */

#endif
