#!/usr/bin/env bash
# generate.sh ROOT: writes the Go code of the protocol below ROOT.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/bin/tools:$PATH protoc -I plugin/proto \
	--go_out="$1" --go_opt=module=github.com/holdfast-jobs/holdfast \
	--go-grpc_out="$1" --go-grpc_opt=module=github.com/holdfast-jobs/holdfast \
	handler.proto
