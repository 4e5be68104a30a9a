# Everything runs in .venv, which `setup` builds from constraints.txt and from nothing else on this machine.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo quick test look docs bench mutants peers night interop lock clean

# The first Python of at least 3.11; `make setup PYTHON=/usr/bin/python3.12` takes another.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)

JOBS ?= 2
OLDER_Z3 := 4.16.0.0
ROCKETMQ := 5.5.0
VENV := .venv/bin/python
PIP := $(VENV) -m pip --disable-pip-version-check
PYTEST := $(VENV) -m pytest --numprocesses $(JOBS) --dist loadgroup

# Tests start some hundred interpreters. The bytecode of these is kept, and lies beside no source.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/bytecode

# The rooms with files that differ from HEAD, in themselves or in their tests.
CHANGED = $(shell { git diff --name-only HEAD; git ls-files --others --exclude-standard; } 2>/dev/null | \
	sed 's,^tests/,,; s,/.*,,')
ROOM = $(or $(sort $(filter native spec impl properties traces gapless manual house,$(CHANGED))),spec)

help:
	@echo 'make demo    check a real broker store, whole and damaged; writes an HTML report'
	@echo 'make quick   style, types and the tests of the rooms that differ from HEAD, or of ROOM=impl, but for the slow ones'
	@echo 'make test    style, types and tests'
	@echo 'make look    screenshots of reports in Chromium at three widths, light and dark; nothing may run over or be pale'
	@echo 'make docs    the pages as a site for offline reading (build/site), and man pages (build/man); a dead link fails'
	@echo 'make setup   build .venv (demo, test, bench, peers, night and interop do so by themselves)'
	@echo 'make bench   how fast the checker is, on a store of a million records'
	@echo 'make mutants documented defects of brokers, planted, and traces, damaged: what caught each; writes the rates into README'
	@echo 'make peers   exploration beside Stateright, on the same models (wants cargo)'
	@echo 'make night   the tests with ten thousand mutations and longer runs; proofs by two Z3s and ten seeds'
	@echo 'make interop a real RocketMQ broker opens what our implementation wrote, and back (wants Java 17 and Maven)'
	@echo 'make lock    choose the newest versions of all we depend on: rewrites constraints.txt'
	@echo 'make clean   remove all that make has made'

setup: .venv/ready

demo: .venv/ready
	$(VENV) -m gapless demo build/demo

quick: export HYPOTHESIS_PROFILE = quick
quick: .venv/ready
	$(STYLE)
	$(call TYPES_AND,$(PYTEST) -m 'not slow' $(patsubst %,tests/%,$(ROOM)))

test: .venv/ready
	$(STYLE)
	$(call TYPES_AND,$(PYTEST))

look: .venv/ready
	$(PIP) install --quiet --no-compile --constraint constraints.txt --editable '.[look]'
	$(VENV) -m tests.look

docs: .venv/ready
	$(PIP) install --quiet --no-compile --constraint constraints.txt --editable '.[docs]'
	$(VENV) -m manual

bench: .venv/ready
	$(VENV) -m benchmarks

mutants: .venv/ready
	$(VENV) -m gapless.properties.faults.zoo --jobs $(JOBS) --write
	$(VENV) -m tests.support.trace_mutants --jobs $(JOBS) --write
	$(VENV) -m tests.support.kafka.detection --jobs $(JOBS) --write
	$(VENV) -m tests.support.detection

peers: .venv/ready
	$(VENV) -m benchmarks.peers

night: .venv/ready
	GAPLESS_FUZZ=10000 HYPOTHESIS_PROFILE=night $(PYTEST)
	$(VENV) -m gapless.properties.machines.crashes --points 10000 --recorded 2 --jobs $(JOBS)
	$(VENV) -m gapless.properties.machines.interleavings --schedules 100000 --jobs $(JOBS)
	$(VENV) -m gapless.properties.machines.interrupts --jobs $(JOBS)
	$(VENV) -m gapless.properties.reference_store.coordination --cases 10000 --jobs $(JOBS)
	$(VENV) -m gapless.properties.reference_store.transactional --walks 25000 --jobs $(JOBS)
	$(VENV) -m gapless.properties.reference_store.transactional --walks 10000 --jobs $(JOBS) --faults
	$(VENV) -m gapless.properties.reference_store.orders --jobs $(JOBS)
	$(VENV) -m gapless.properties.machines.blackbox --kills 5000 --jobs $(JOBS)
	$(VENV) -m gapless.native.fuzzer --programs 20000 --jobs $(JOBS)
	$(VENV) -m tests.support.mutated_files --minutes 60
	$(VENV) -m gapless.properties.fuzzing --specs 100000 --jobs $(JOBS)
	$(VENV) -m gapless.properties.fuzzing --specs 100000 --jobs $(JOBS) --prover
	$(VENV) -m gapless.properties.faults.implementation --jobs $(JOBS)
	$(VENV) -m gapless.properties.faults.spec_mutants --jobs $(JOBS)
	$(PIP) install --quiet --no-deps --upgrade --target .venv/older-z3 z3-solver==$(OLDER_Z3)
	$(call PROVED,.venv/older-z3)
	$(call PROVED,)
	$(VENV) -m gapless.properties.proof.seeds --jobs $(JOBS)

interop: .venv/ready
	$(VENV) -m tests.interop --version $(ROCKETMQ)

define STYLE
$(VENV) -m ruff check .
$(VENV) -m ruff format --check .
endef

# Types are checked while tests run: that takes one core, and theirs wait for one another at times. What they came to is
# said last: the start of a long run's output is what nobody looks at, and what CI cuts.
TYPES_AND = mkdir -p build; $(VENV) -m mypy > build/types.txt 2>&1 & checked=$$!; $(1); tests=$$?; \
	wait $$checked; types=$$?; cat build/types.txt; exit $$((tests ? tests : types))

# Every proof anew, by the Z3 in a folder, if one is named; what is shown is the ledger.
define PROVED
@mkdir -p build
PYTHONPATH='$(1)' $(VENV) -m gapless prove --fresh > build/proofs.txt; code=$$?; tail -n 18 build/proofs.txt; exit $$code
endef

# Says what is missing before anything is half made.
define NEED_PYTHON
@test -n '$(PYTHON)' || { \
	echo 'gapless needs Python 3.11 or newer. On Debian: apt install python3.11 python3.11-venv' >&2; exit 1; }
@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || { \
	package=$$('$(PYTHON)' -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
	echo "Python's venv is missing. On Debian: apt install $$package" >&2; exit 1; }
endef

# uv fetches and unpacks many packages at once, from where pip is told to look. Where there is no uv, or it finds no way, pip does
# the same one by one.
ALL := --constraint constraints.txt --no-build-isolation --editable '.[dev,spark,spec]'
define INSTALL_ALL
@$(PIP) install --quiet --no-compile --only-binary uv --constraint constraints.txt uv || true
index=$$($(PIP) config get global.index-url 2>/dev/null); UV_SYSTEM_CERTS=true \
	$(VENV) -m uv pip install --quiet --python $(VENV) $${index:+--default-index "$$index"} $(ALL) || \
	$(PIP) install --quiet --no-compile --use-pep517 $(ALL)
endef

# Setuptools comes first and pinned, so that nothing is fetched that constraints.txt does not name.
.venv/ready: pyproject.toml constraints.txt
	$(NEED_PYTHON)
	@echo 'Building .venv with $(PYTHON): a minute or two, once.'
	@$(VENV) -m pip --version >/dev/null 2>&1 || '$(PYTHON)' -m venv --clear .venv
	$(PIP) install --quiet --no-compile --constraint constraints.txt setuptools
	$(INSTALL_ALL)
	@touch $@

# What pip would install into an empty environment, the spark extra included.
lock:
	$(NEED_PYTHON)
	'$(PYTHON)' -m venv --clear .venv-lock
	.venv-lock/bin/python -m pip --disable-pip-version-check install --quiet --dry-run --ignore-installed \
		--report .venv-lock/report.json '.[dev,spark,spec,look,docs]'
	.venv-lock/bin/python -c "$$LOCK" < .venv-lock/report.json > constraints.txt.new
	mv constraints.txt.new constraints.txt
	rm -rf .venv-lock build *.egg-info

define LOCK
import json, sys
chosen = (package["metadata"] for package in json.load(sys.stdin)["install"])
print("# Made by `make lock`: the versions that `make setup` installs.")
print(*sorted(f"{m['name'].lower()}=={m['version']}" for m in chosen if m["name"] != "gapless"), sep="\n")
endef
export LOCK

clean:
	rm -rf .venv .venv-lock build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
