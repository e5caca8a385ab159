#!/usr/bin/env bash
# generate.sh ROOT: writes the protocol's code for Go and Python, and its text for
# Node.js, below ROOT.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(realpath "$1")
PATH=$PWD/bin/tools:$PATH protoc -I plugin/proto \
	--go_out="$root" --go_opt=module=github.com/holdfast-jobs/holdfast \
	--go-grpc_out="$root" --go-grpc_opt=module=github.com/holdfast-jobs/holdfast \
	handler.proto
python=$root/sdk/python/src node=$root/sdk/node/lib
mkdir -p "$python" "$node"
# Below the package's name, because a program can contain only one handler.proto.
protoc -I holdfast=plugin/proto --python_out="$python" --pyi_out="$python" holdfast/handler.proto
cp plugin/proto/handler.proto "$node/"
