#!/usr/bin/env bash
# tools.sh: puts the tools that tools/go.mod names into bin/tools. They are built once
# for each version of Go and of tools/go.sum, and kept in the user's cache.
set -euo pipefail
cd "$(dirname "$0")/.."
key=$({ go version && cat tools/go.mod tools/go.sum; } | git hash-object --stdin)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/tools-$key
[ -d "$cache" ] || {
	echo "building the linter and the generators, which takes minutes, once" >&2
	mkdir -p "${cache%/*}"
	new=$(mktemp -d "$cache.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	go -C tools build -o "$new/" tool
	mv -T "$new" "$cache" 2>/dev/null || [ -d "$cache" ] # somebody else may have been faster
}
mkdir -p bin/tools
ln -sf "$cache"/* bin/tools/
