/* Columns of a time. */
#ifndef ONLINE_SVM_TIME_COLUMNS_H
#define ONLINE_SVM_TIME_COLUMNS_H

enum { WAVES = 6 }; /* number of sine and cosine columns of a time; the column of days follows */

/* The milliseconds since 1970 of a cell; NaN if it is not a time. */
double milliseconds_of(double value);

/* Write the columns of a time to `encoded`, which must be 0. A missing time keeps 0 in the WAVES columns and has NaN
days. */
void write_time(double time, double encoded[WAVES + 1]);

#endif
