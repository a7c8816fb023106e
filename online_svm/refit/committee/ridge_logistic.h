/* The step halving of Newton's method in `ridge_logistic.c` and `stack.c`. */
#ifndef ONLINE_SVM_RIDGE_LOGISTIC_H
#define ONLINE_SVM_RIDGE_LOGISTIC_H

#define OVERSHOOT 0.1 /* accepted ascent at the end of a step, relative to the descent at its start */
enum { MAX_HALVINGS = 30 };

#endif
