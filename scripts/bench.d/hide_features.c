/* Hides features of the processor from programs, to measure what others have: LD_PRELOAD=hide_features.so
   HIDDEN_FEATURES=sha,avx512,avx2. Each CPUID instruction faults, and its answer is cut (Linux on x86-64 only). */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static int hide_sha, hide_avx512, hide_avx2;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)r[REG_RIP];
    if (at[0] != 0x0f || at[1] != 0xa2) {
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    unsigned leaf = r[REG_RAX], part = r[REG_RCX], a, b, c, d;
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
    __cpuid_count(leaf, part, a, b, c, d);
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    if (leaf == 7 && part == 0) {
        if (hide_sha) b &= ~(1u << 29);
        if (hide_avx512) {
            b &= ~((1u << 16) | (1u << 17) | (1u << 21) | (1u << 26) | (1u << 27) | (1u << 28) | (1u << 30) | (1u << 31));
            c &= ~((1u << 1) | (1u << 6) | (1u << 8) | (1u << 9) | (1u << 10) | (1u << 11) | (1u << 12) | (1u << 14));
            d &= ~((1u << 2) | (1u << 3) | (1u << 8) | (1u << 22) | (1u << 23) | (1u << 24) | (1u << 25));
        }
        if (hide_avx2) b &= ~((1u << 5) | (1u << 3) | (1u << 8));
    }
    if (leaf == 7 && part == 1 && hide_sha) a &= ~7u;
    if (leaf == 1 && hide_avx2) c &= ~((1u << 28) | (1u << 12) | (1u << 29));
    r[REG_RAX] = a; r[REG_RBX] = b; r[REG_RCX] = c; r[REG_RDX] = d;
    r[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void) {
    const char *words = getenv("HIDDEN_FEATURES");
    if (!words) return;
    hide_sha = !!strstr(words, "sha");
    hide_avx2 = !!strstr(words, "avx2");
    hide_avx512 = hide_avx2 || strstr(words, "avx512");
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };
    sigaction(SIGSEGV, &action, NULL);
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0)) {
        perror("this processor does not let features be hidden");
        _exit(99);
    }
}
