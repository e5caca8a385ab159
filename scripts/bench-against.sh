#!/usr/bin/env bash
# bench-against.sh COMMIT [FLAG...]: builds the orchestrator of a commit, and compares what a job
# costs with the one in bin. The flags are those of test/bench/against.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -n "${1:-}" ] || { echo 'bench-against.sh: name a commit, as in make bench-against COMMIT=v1.0.0' >&2; exit 2; }
commit=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "bench-against.sh: $1 is no commit of this repository" >&2; exit 2; }
shift
dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/source" 2>/dev/null; rm -rf "$dir"' EXIT
git worktree add --quiet --detach "$dir/source" "$commit"
(cd "$dir/source" && go build -trimpath -o "$dir/bin/" ./cmd/orchestrator ./examples/handlers/echo)
go run ./test/bench/against -before "$dir/bin" -after bin "$@"
