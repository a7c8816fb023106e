/* Columns of a time. */
#ifndef ONLINE_SVM_TIME_COLUMNS_H
#define ONLINE_SVM_TIME_COLUMNS_H

enum { WAVES = 6 }; /* sine and cosine columns of a time; the days follow */

/* The milliseconds since 1970 of a cell; NaN if it is no time. */
double milliseconds_of(double value);

/* Write the columns of a time; a missing one gets the centre of every circle, and NaN days. */
void write_time(double time, double encoded[WAVES + 1]);

#endif
