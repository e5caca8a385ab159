#!/usr/bin/env bash
# root-tests.sh: prints the arguments of go test that select the tests for root: all
# tests in files that mention os.Geteuid, asRoot or cgroups.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(git grep -lE 'os\.Geteuid\(\)|asRoot\(|realTree\(|\bCgroupAuto\b|\bcgroup\.[A-Z]' -- '*_test.go' ':!test/')
names=$(sed -nE 's/^func (Test[^a-z(]\w*)\(\w+ \*testing\.T\).*/\1/p' "${files[@]}" | sort -u | paste -sd '|')
echo "-run=^($names)\$"
printf './%s\n' "${files[@]%/*}" | sort -u
