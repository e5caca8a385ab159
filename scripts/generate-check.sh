#!/usr/bin/env bash
# generate-check.sh: fails when the generated code differs from the protocol.
# It leaves the checkout alone.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
scripts/generate.sh "$fresh"
# The version of protoc itself stands in a comment and does not matter.
diff -r -u -I '^//.*protoc \+v' plugin/internal/handlerv1 "$fresh/plugin/internal/handlerv1" || {
	echo "generated code is not current: run make generate" >&2
	exit 1
}
