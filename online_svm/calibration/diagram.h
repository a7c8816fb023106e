/* The greatest convex minorant of a cumulative sum diagram; its slopes are the isotonic fit (Barlow et al. 1972).

Point j of the diagram is (x_j, y_j): the number of examples, and of positive ones, among the j lowest distinct scores.
Slopes are compared by cross-multiplication, which is exact for counts (up to 3e9 examples), so that equal means merge.
With sums of weights, means that differ only by rounding may stay separate. */
#ifndef ONLINE_SVM_DIAGRAM_H
#define ONLINE_SVM_DIAGRAM_H

#include <stdint.h>

/* For each point, write the next corner of the minorant of it and all later points; the last point links to itself.

x increases strictly. Points inside a straight edge are not corners. */
void hull_links_of_counts(const int64_t *x, const int64_t *y, int64_t n_points, int64_t *links);
void hull_links_of_weights(const double *x, const double *y, int64_t n_points, int64_t *links);

#endif
