#!/usr/bin/env bash
# generate-check.sh: fails if the generated code is out of date. It does not change the
# checkout.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
scripts/generate.sh "$fresh"
# The version of protoc, which is in a comment, does not matter.
for generated in plugin/internal/handlerv1 \
	sdk/python/src/holdfast/handler_pb2.py{,i} sdk/node/lib/handler.proto; do
	diff -r -u -I '^//.*protoc \+v' $generated "$fresh/$generated" || {
		echo "the generated code is out of date: run make generate" >&2
		exit 1
	}
done
