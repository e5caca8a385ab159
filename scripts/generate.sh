#!/usr/bin/env bash
# generate.sh ROOT: writes the code of the protocol for Go and Python, its text
# for Node.js, and the test client of the API's description, below ROOT.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(realpath "$1")
PATH=$PWD/bin/tools:$PATH protoc -I plugin/proto \
	--go_out="$root" --go_opt=module=github.com/holdfast-jobs/holdfast \
	--go-grpc_out="$root" --go-grpc_opt=module=github.com/holdfast-jobs/holdfast \
	handler.proto
python=$root/examples/handlers/python node=$root/examples/handlers/node/holdfast/lib
mkdir -p "$python" "$node" "$root/test/openapi/client"
# Under the package's own name: one program can hold but one handler.proto.
protoc -I holdfast=plugin/proto --python_out="$python" --pyi_out="$python" holdfast/handler.proto
cp plugin/proto/handler.proto "$node/"
go -C test/openapi tool oapi-codegen -config client.yaml -o "$root/test/openapi/client/client.gen.go" ../../api/openapi.yaml
