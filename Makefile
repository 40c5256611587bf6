# hutch: one Makefile, output only under build/.
#
#   make demo     install what is missing, build, run a real example and show the result
#   make check    the same, then run every test
#   make          build/hutch and build/libhutch.so

B        ?= build
PREFIX   ?= /usr/local
VERSION  := $(shell sed -n 's/^\#define HUTCH_VERSION "\(.*\)"/\1/p' src/include/hutch.h)
SOVERSION := 0

CC       := gcc
WARN     := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
            -Wformat=2 -Wimplicit-fallthrough -Wundef -Wpointer-arith -Wcast-qual \
            -Wno-missing-field-initializers
HARDEN   := -fstack-protector-strong -fstack-clash-protection -fcf-protection \
            -D_FORTIFY_SOURCE=2
OPT      ?= -O2 -g
SAN      ?=
# V=1 shows whole command lines.
V        ?=
Q        := $(if $(V),,@)
say       = $(if $(V),,@echo "  $(1) $(2)")
ifneq ($(SAN),)
HARDEN   := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif
CPPFLAGS += -D_GNU_SOURCE -Isrc/include -Isrc -I$(B)/gen
CFLAGS   += -std=gnu11 $(OPT) $(WARN) $(HARDEN) -fPIC -fvisibility=hidden
LDFLAGS  += -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
ifneq ($(SAN),)
LDFLAGS  += -fsanitize=address,undefined
endif
# Static where the common path needs them, so that they cost nothing at start; libseccomp and
# libnl are loaded by the few runs that need them (src/base/dl.h).
LIBS     := -l:libyajl_s.a -l:libcap-ng.a -ldl

# Init is a freestanding static program: no libc, raw system calls (design: docs/architecture.md).
INIT_CFLAGS := -std=gnu11 -Os -g $(WARN) -ffreestanding -fno-stack-protector -fno-pic -no-pie \
               -fno-asynchronous-unwind-tables -fcf-protection=none -fno-builtin \
               -mno-sse -mno-mmx -mgeneral-regs-only
INIT_LDFLAGS := -nostdlib -static -no-pie -Wl,--gc-sections -Wl,-z,noexecstack \
                -Wl,--build-id=none -Wl,-z,norelro -Wl,-s

LAYERS   := base request plan kernel kernel/step box
LIB_SRC  := $(foreach l,$(LAYERS),$(wildcard src/$(l)/*.c))
CLI_SRC  := $(wildcard src/cli/*.c)
INIT_SRC := $(wildcard src/box/init/*.c) $(wildcard src/kernel/step/*.c)
GEN_SRC  := $(B)/gen/policies.c $(B)/gen/runner_files.c $(B)/gen/skeleton.c

LIB_OBJ  := $(LIB_SRC:%.c=$(B)/obj/%.o) $(B)/obj/gen/policies.o $(B)/obj/gen/runner_files.o $(B)/obj/gen/skeleton.o \
            $(B)/obj/init_blob.o
CLI_OBJ  := $(CLI_SRC:%.c=$(B)/obj/%.o)
INIT_OBJ := $(INIT_SRC:%.c=$(B)/initobj/%.o)

# The test build differs in one thing: environment variables can leave a set-up step out or
# make a set-up system call fail, so that tests can show that each one matters.
T        := $(B)/testing
T_OBJ    := $(LIB_SRC:%.c=$(T)/obj/%.o) $(CLI_SRC:%.c=$(T)/obj/%.o) \
            $(B)/obj/gen/policies.o $(B)/obj/gen/runner_files.o $(B)/obj/gen/skeleton.o $(T)/obj/init_blob.o
T_INIT_OBJ := $(INIT_SRC:%.c=$(T)/initobj/%.o)

TEST_SUPPORT := $(wildcard tests/support/*.c)
TESTS    := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c) \
              $(wildcard tests/box/test_*.c) $(wildcard tests/escape/test_*.c))
PROBE    := $(B)/tests/probe

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all demo check check-vm test-binaries lint asan fuzz bench install uninstall clean deps

all: $(B)/hutch $(B)/libhutch.so

# ---- the library and the command -------------------------------------------------------------
$(B)/hutch: $(LIB_OBJ) $(CLI_OBJ)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(LDFLAGS) -pie -o $@ $^ $(LIBS)

$(B)/libhutch.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,AR  ,$@)
	$(Q)$(AR) rcs $@ $^

$(B)/libhutch.so: $(LIB_OBJ) src/libhutch.map
	$(call say,CC  ,$@)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,libhutch.so.$(SOVERSION) \
	  -Wl,--version-script=src/libhutch.map -Wl,--no-undefined -o $@ $(LIB_OBJ) $(LIBS)
	ln -sf libhutch.so $(B)/libhutch.so.$(SOVERSION)

$(B)/obj/%.o: %.c | $(GEN_SRC)
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/obj/gen/%.o: $(B)/gen/%.c
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# ---- init ------------------------------------------------------------------------------------
$(B)/initobj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(CPPFLAGS) $(INIT_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/init: $(INIT_OBJ)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(INIT_LDFLAGS) -o $@ $^
	@test $$(stat -c %s $@) -le 102400 || { echo "init is over 100 KiB"; exit 1; }

$(B)/obj/init_blob.o: src/box/init_blob.S $(B)/init
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) -DINIT_PATH='"$(B)/init"' -c -o $@ $<

$(T)/initobj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(CPPFLAGS) $(INIT_CFLAGS) -DHUTCH_TESTING -MMD -MP -c -o $@ $<

$(T)/init: $(T_INIT_OBJ)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(INIT_LDFLAGS) -o $@ $^

$(T)/obj/init_blob.o: src/box/init_blob.S $(T)/init
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) -DINIT_PATH='"$(T)/init"' -c -o $@ $<

# ---- generated code --------------------------------------------------------------------------
POLICY_TOOL_SRC := $(wildcard tools/policy/*.c) src/kernel/seccomp_json.c src/kernel/seccomp_compile.c \
                   $(wildcard src/base/*.c)

$(B)/tools/policy: $(POLICY_TOOL_SRC) $(wildcard src/base/*.h src/kernel/seccomp*.h)
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 -O1 -g $(WARN) -o $@ $(POLICY_TOOL_SRC) -lseccomp $(LIBS)

$(B)/gen/policies.c: $(B)/tools/policy $(wildcard policy/*.json)
	@mkdir -p $(@D)
	$(call say,GEN ,$@)
	$(Q)$(B)/tools/policy $(sort $(wildcard policy/*.json)) > $@

$(B)/gen/runner_files.c: tools/embed $(wildcard src/runner/*/*)
	@mkdir -p $(@D)
	$(call say,GEN ,$@)
	$(Q)tools/embed src/runner $@

$(B)/gen/skeleton.c: tools/skeleton $(shell find rootfs/skeleton -type f)
	@mkdir -p $(@D)
	$(call say,GEN ,$@)
	$(Q)tools/skeleton rootfs/skeleton $@

# ---- the test build --------------------------------------------------------------------------
$(T)/obj/%.o: %.c | $(GEN_SRC)
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -DHUTCH_TESTING -MMD -MP -c -o $@ $<

$(T)/hutch: $(T_OBJ)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(LDFLAGS) -pie -o $@ $^ $(LIBS)

# ---- tests -----------------------------------------------------------------------------------
TEST_CPPFLAGS := $(CPPFLAGS) -Itests -DHUTCH_BUILD='"$(abspath $(B))"' \
                 -DHUTCH_SOURCE='"$(abspath .)"'
$(B)/obj/tests/%.o: tests/%.c | $(GEN_SRC)
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(TEST_CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/tests/%: $(B)/obj/tests/%.o $(TEST_SUPPORT:%.c=$(B)/obj/%.o) $(B)/libhutch.a
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) -lcriterion $(LIBS)
# One binary of several files.
$(B)/tests/vm/cgroup: $(patsubst %,$(B)/obj/tests/vm/cgroup_%.o,support place neighbour)

$(PROBE): $(wildcard tests/probe/*.c)
	@mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) -std=gnu11 -O1 -D_GNU_SOURCE -Wall -Wextra -Werror -static -o $@ $^

test-binaries: all $(T)/hutch $(TESTS) $(PROBE)

check: deps
	@$(MAKE) --no-print-directory test-binaries
	@tests/run all

check-vm: deps
	@tools/deps vm
	@$(MAKE) --no-print-directory test-binaries
	@tools/vm/check

deps:
	@tools/deps check

# ---- the rest --------------------------------------------------------------------------------
demo:
	@tools/deps build
	@$(MAKE) --no-print-directory all
	@tools/demo $(B)

lint:
	@tools/lint

asan: deps
	@ASAN_OPTIONS= $(MAKE) --no-print-directory B=$(B)/asan SAN=1 OPT="-O1 -g" test-binaries
	@HUTCH_B=$(B)/asan tests/run asan

FUZZ_SECONDS ?= 60
fuzz: deps
	@tools/fuzz $(FUZZ_SECONDS)

bench: deps
	@tools/deps bench
	@$(MAKE) --no-print-directory all
	@tools/bench/run

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig \
	  $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/share/man/man1 \
	  $(DESTDIR)$(PREFIX)/share/man/man3 $(DESTDIR)$(PREFIX)/share/man/man5 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 755 $(B)/hutch $(DESTDIR)$(PREFIX)/bin/hutch
	install -m 755 $(B)/libhutch.so $(DESTDIR)$(PREFIX)/lib/libhutch.so.$(VERSION)
	ln -sf libhutch.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libhutch.so.$(SOVERSION)
	ln -sf libhutch.so.$(SOVERSION) $(DESTDIR)$(PREFIX)/lib/libhutch.so
	install -m 644 src/include/hutch.h $(DESTDIR)$(PREFIX)/include/hutch.h
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' src/hutch.pc.in \
	  > $(DESTDIR)$(PREFIX)/lib/pkgconfig/hutch.pc
	chmod 644 $(DESTDIR)$(PREFIX)/lib/pkgconfig/hutch.pc
	for m in 1 3 5; do install -m 644 docs/man/*.$$m $(DESTDIR)$(PREFIX)/share/man/man$$m/; done
	install -m 644 src/cli/completion/hutch.bash \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions/hutch

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/hutch $(DESTDIR)$(PREFIX)/lib/libhutch.so* \
	  $(DESTDIR)$(PREFIX)/include/hutch.h $(DESTDIR)$(PREFIX)/lib/pkgconfig/hutch.pc \
	  $(addprefix $(DESTDIR)$(PREFIX)/share/man/man1/,$(notdir $(wildcard docs/man/*.1))) \
	  $(addprefix $(DESTDIR)$(PREFIX)/share/man/man3/,$(notdir $(wildcard docs/man/*.3))) \
	  $(addprefix $(DESTDIR)$(PREFIX)/share/man/man5/,$(notdir $(wildcard docs/man/*.5))) \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions/hutch

clean:
	rm -rf $(B)

# Roots that tests unpack there have directories of such names too.
-include $(shell find $(B)/obj $(B)/initobj $(T) -name '*.d' -type f 2>/dev/null)
