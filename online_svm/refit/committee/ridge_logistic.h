/* Limits on halving a Newton step of a penalised regression, for `ridge_logistic.c` and `stack.c`. */
#ifndef ONLINE_SVM_RIDGE_LOGISTIC_H
#define ONLINE_SVM_RIDGE_LOGISTIC_H

#define OVERSHOOT 0.1 /* uphill slope at the end of a step that is accepted, relative to its initial slope */
enum { MOST_HALVINGS = 30 };

#endif
