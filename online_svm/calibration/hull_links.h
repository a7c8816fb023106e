/* The body of `hull_links_of_counts` and `hull_links_of_weights`, included once for each type VALUE.

It builds a monotone chain from the right and skips corners that do not lie below the edge to the next corner. */
void HULL_LINKS(const VALUE *x, const VALUE *y, int64_t n_points, int64_t *links) {
    int64_t last = n_points - 1;
    links[last] = last;
    for (int64_t j = last - 1; j >= 0; j--) {
        int64_t corner = j + 1;
        while (corner != last) {
            int64_t after = links[corner];
            VALUE here = (y[corner] - y[j]) * (x[after] - x[corner]);
            if (here < (y[after] - y[corner]) * (x[corner] - x[j])) break;
            corner = after;
        }
        links[j] = corner;
    }
}
