#!/usr/bin/env bash
# npm-ci.sh DIRECTORY: installs what the directory's package-lock.json names, unless
# that is installed already. Packages that npm has downloaded before come from its cache.
set -euo pipefail
cd "$1"
cmp -s package-lock.json node_modules/.package-lock-installed || {
	npm ci --prefer-offline --no-audit --no-fund --ignore-scripts --loglevel=error
	cp package-lock.json node_modules/.package-lock-installed
}
