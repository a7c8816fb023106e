#include "svm/exact/common_shift.h"

#include "compiled/extremes.h"

/* Return whether all members are strictly inside their bounds before and after a shift. */
static bool is_free_to_move(const Shift *shift, const Programme *problem, double each) {
    const double *beta = problem->beta.at, *lower = problem->lower.at, *upper = problem->upper.at;
    int64_t blocked = 0;
    for (int64_t k = 0; k < shift->members.n; k++) {
        double moved = beta[k] + each, low = lesser(beta[k], moved), high = greater(beta[k], moved);
        bool is_inside = (low > lower[k]) & (high < upper[k]);
        blocked += !is_inside & (shift->members.at[k] != 0.0);
    }
    return blocked == 0;
}

CommonStep common_step(const Shift *shift, const Pair *pair, double mean, const double *diagonal,
                       const Programme *problem) {
    const CommonStep none = {-1, 0.0};
    const double *beta = problem->beta.at;
    int64_t i = pair->i, j = pair->j;
    /* 1. Slack of i and of j against the mean slack of the members, and the curvatures. */
    double rise = pair->slack_i - mean, fall = mean - pair->slack_j;
    double curvature_i = greater(diagonal[i] - 2.0 * shift->row.at[i] + shift->spread, FLAT);
    double curvature_j = greater(diagonal[j] - 2.0 * shift->row.at[j] + shift->spread, FLAT);
    /* 2. Gain of either direction, against the gain of the pair. */
    double gain_i = rise > 0.0 ? rise * rise / curvature_i : 0.0;
    double gain_j = fall > 0.0 ? fall * fall / curvature_j : 0.0;
    if (greater(gain_i, gain_j) <= pair->gain) return none;
    /* 3. Step in the better direction, clipped to the bounds of i or j. */
    CommonStep found = {i, lesser(rise / curvature_i, problem->upper.at[i] - beta[i])};
    if (!(gain_i >= gain_j)) found = (CommonStep){j, -lesser(fall / curvature_j, beta[j] - problem->lower.at[j])};
    /* 4. No step if a member would meet its bound. */
    return is_free_to_move(shift, problem, -found.step / shift->size) ? found : none;
}

void shift_members(const Shift *shift, double *beta, double each) {
    const double *members = shift->members.at;
    double *before = shift->before.at;
    for (int64_t k = 0; k < shift->members.n; k++) {
        beta[k] += each * members[k];
        before[k] += each * members[k];
    }
    *shift->moved += each;
}
