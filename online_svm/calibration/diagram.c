#include "calibration/diagram.h"

#include "compiled/kernel.h"

#define VALUE int64_t
#define HULL_LINKS hull_links_of_counts
#include "calibration/hull_links.h"
#undef VALUE
#undef HULL_LINKS

#define VALUE double
#define HULL_LINKS hull_links_of_weights
#include "calibration/hull_links.h"
#undef VALUE
#undef HULL_LINKS

/* Follow the links from the first point to the last; return the number of corners. */
static int64_t hull_corners(const int64_t *links, int64_t *corners) {
    int64_t count = 1;
    corners[0] = 0;
    for (int64_t at = 0; links[at] != at; at = links[at]) corners[count++] = links[at];
    return count;
}

static void call_links_of_counts(const Slot *a, Slot *r) {
    (void)r;
    hull_links_of_counts(a[0].int_vector.at, a[1].int_vector.at, a[0].int_vector.n, a[2].int_vector.at);
}

static void call_links_of_weights(const Slot *a, Slot *r) {
    (void)r;
    hull_links_of_weights(a[0].vector.at, a[1].vector.at, a[0].vector.n, a[2].int_vector.at);
}

static void call_hull_corners(const Slot *a, Slot *r) {
    r->integer = hull_corners(a[0].int_vector.at, a[1].int_vector.at);
}

const Kernel calibration_diagram_kernels[] = {
    {"calibration.diagram._links_of_counts", "x: i64[k+1] y: i64[k+1] links: =i64[k+1]", call_links_of_counts, false},
    {"calibration.diagram._links_of_weights", "x: f64[k+1] y: f64[k+1] links: =i64[k+1]", call_links_of_weights, false},
    {"calibration.diagram._hull_corners", "links: i64[k+1] corners: =i64[k+1] -> int", call_hull_corners, false},
    {0},
};
