#!/usr/bin/env bash
# generate.sh ROOT: writes the Go code of the protocol, and the test client of
# the API's description, below ROOT.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(realpath "$1")
PATH=$PWD/bin/tools:$PATH protoc -I plugin/proto \
	--go_out="$root" --go_opt=module=github.com/holdfast-jobs/holdfast \
	--go-grpc_out="$root" --go-grpc_opt=module=github.com/holdfast-jobs/holdfast \
	handler.proto
mkdir -p "$root/test/openapi/client"
go -C test/openapi tool oapi-codegen -config client.yaml -o "$root/test/openapi/client/client.gen.go" ../../api/openapi.yaml
