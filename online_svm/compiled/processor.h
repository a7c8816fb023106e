/* The level of x86-64 that this processor and its system can run. */
#ifndef ONLINE_SVM_PROCESSOR_H
#define ONLINE_SVM_PROCESSOR_H

/* 1, 3 or 4 for x86-64-v1, v3 or v4; 0 on another kind of processor. */
int x86_level(void);

#endif
