#!/usr/bin/env bash
# Runs a command as an ordinary user, in a copy of this checkout that is that
# user's own: scripts/as-user.sh make test. Root only. The user, holdfast-test, is
# made when it is missing, and so are its caches: modules come from root's cache,
# without the network. The caches stay for the next run.
set -euo pipefail
cd "$(dirname "$0")/.."
user=holdfast-test

getent passwd $user >/dev/null || useradd --create-home --shell /bin/bash $user
home=$(getent passwd $user | cut -d: -f6)
copy=$home/checkout modules=$home/modules

rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard |
	tar --create --null --files-from=- --ignore-failed-read | tar --extract --directory "$copy"
GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" GOMODCACHE=$modules GOFLAGS=-modcacherw \
	go list -deps -test ./... >/dev/null
chown -R $user: "$copy" "$modules"

# Whatever `go env -w` has set for root holds for the user too.
cd "$copy"
exec runuser -u $user -- env GOPROXY="$(go env GOPROXY)" GOSUMDB="$(go env GOSUMDB)" \
	GOMODCACHE="$modules" GOCACHE="$home/build" "$@"
