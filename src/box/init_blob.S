/* The init program, embedded. The linker gives its bounds; launch writes it to a sealed memfd. */
    .section .rodata
    .balign 4096
    .global init_blob_start
    .hidden init_blob_start
init_blob_start:
    .incbin INIT_PATH
    .global init_blob_end
    .hidden init_blob_end
init_blob_end:
    .section .note.GNU-stack,"",@progbits
