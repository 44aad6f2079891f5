# Two commands do everything on a fresh Debian or Ubuntu machine that has Rust:
#
#   make demo    install what is missing, build, measure; ends with a table: work, plain TCP, Sidewire, ratio
#   make test    install what is missing, build, run every test
#
# The rest is for those who stay: install, uninstall, deb, soak, fmt, lint, clean.

CARGO   ?= cargo
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib/sidewire
DESTDIR ?=
# Where `make deb` leaves the package.
OUT     ?= target/debian

CARGO_TARGET_DIR ?= target
RELEASE := $(CARGO_TARGET_DIR)/release
BUILT   := $(addprefix $(RELEASE)/,libsidewire.so sidewire sidewire-run sidewire-bench)
PACKAGES := sh launcher/packaging/packages.sh
export CARGO CARGO_TARGET_DIR

.PHONY: all build demo test soak install uninstall deb fmt lint clean

all: build

build:
	$(PACKAGES) build
	$(CARGO) build --release --workspace

demo:
	$(PACKAGES) demo
	$(CARGO) build --release --workspace
	$(RELEASE)/sidewire-bench compare --quick

test:
	$(PACKAGES) test
	bash .ci/test

# Hours: the bulk exchange with 100 GB, every other case 20 times, real programs at full size.
soak:
	$(PACKAGES) test
	$(CARGO) build --release --workspace --all-targets
	SIDEWIRE_TEST_BYTES=100000000000 $(CARGO) test --release -p sidewire-interpose --test conformance -- bulk
	SIDEWIRE_TEST_REPEAT=20 $(CARGO) test --release -p sidewire-interpose --test conformance -- --skip bulk
	$(RELEASE)/sidewire-bench apps --limit 3600

# No build where everything is there: `make && sudo make install` needs no Rust as root.
$(BUILT):
	$(CARGO) build --release --workspace

install: $(BUILT)
	TARGET="$(RELEASE)" PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" DESTDIR="$(DESTDIR)" \
	    sh launcher/packaging/install.sh install

uninstall:
	TARGET="$(RELEASE)" PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" DESTDIR="$(DESTDIR)" \
	    sh launcher/packaging/install.sh uninstall

deb: build
	TARGET="$(RELEASE)" sh launcher/packaging/deb.sh "$(OUT)"

fmt:
	$(CARGO) fmt --all

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

clean:
	$(CARGO) clean
