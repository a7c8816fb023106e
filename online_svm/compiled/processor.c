/* The features that the processor reports by `cpuid`, and the registers that the system saves at a thread switch.

`__builtin_cpu_supports` is no alternative: with Zig's runtime library it is always false. */
#include "compiled/processor.h"

#include <stdbool.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdint.h>

/* Bits of cpuid, numbered as in the processor manuals; the comment names leaf and register. */
#define BIT(n) (1U << (n))
static const unsigned FMA_MOVBE_OSXSAVE_AVX_F16C = BIT(12) | BIT(22) | BIT(27) | BIT(28) | BIT(29); /* 1: ecx */
static const unsigned BMI_AVX2_BMI2 = BIT(3) | BIT(5) | BIT(8);                                     /* 7: ebx */
static const unsigned AVX512_F_DQ_CD_BW_VL = BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31);       /* 7: ebx */
static const unsigned LZCNT = BIT(5);                                                               /* 80000001: ecx */
/* Bits of the extended control register: the vector registers that the system saves. */
static const unsigned SAVES_YMM = BIT(1) | BIT(2);
static const unsigned SAVES_ZMM = BIT(1) | BIT(2) | BIT(5) | BIT(6) | BIT(7);

static bool has(unsigned bits, unsigned required) { return (bits & required) == required; }

static unsigned saved_registers(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

int x86_level(void) {
    unsigned a, b, c, d, b7, c_extended;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, FMA_MOVBE_OSXSAVE_AVX_F16C)) return 1;
    if (!__get_cpuid_count(7, 0, &a, &b7, &c, &d) || !has(b7, BMI_AVX2_BMI2)) return 1;
    if (!__get_cpuid(0x80000001U, &a, &b, &c_extended, &d) || !has(c_extended, LZCNT)) return 1;
    unsigned saved = saved_registers();
    if (!has(saved, SAVES_YMM)) return 1;
    return has(b7, AVX512_F_DQ_CD_BW_VL) && has(saved, SAVES_ZMM) ? 4 : 3;
}
#else
int x86_level(void) { return 0; }
#endif
