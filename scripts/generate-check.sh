#!/usr/bin/env bash
# generate-check.sh: fails when the generated code differs from what it is made
# of. It leaves the checkout alone.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
scripts/generate.sh "$fresh"
# The version of protoc itself stands in a comment and does not matter.
for generated in plugin/internal/handlerv1 \
	sdk/python/src/holdfast/handler_pb2.py{,i} sdk/node/lib/handler.proto; do
	diff -r -u -I '^//.*protoc \+v' $generated "$fresh/$generated" || {
		echo "generated code is not current: run make generate" >&2
		exit 1
	}
done
