/* start.c - where the kernel enters, and the functions that the compiler itself may call. */
#include <stddef.h>

void init_main(void) __attribute__((noreturn));
void *memcpy(void *restrict to, const void *restrict from, size_t len);
void *memset(void *to, int byte, size_t len);

__asm__(".globl _start\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    and $-16, %rsp\n"
        "    call init_main\n"
        "    hlt\n");

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
    void *ret = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
    return ret;
}

void *memset(void *to, int byte, size_t len)
{
    void *ret = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(len) : "a"(byte) : "memory");
    return ret;
}
