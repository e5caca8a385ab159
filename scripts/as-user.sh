#!/usr/bin/env bash
# as-user.sh COMMAND...: runs a command as an ordinary user, in a copy of this checkout
# that belongs to that user: scripts/as-user.sh make test. For root only. It makes the
# user, holdfast-test, when there is none. The user's caches stay for the next run, and
# modules come from root's cache, without the network.
set -euo pipefail
cd "$(dirname "$0")/.."
user=holdfast-test

getent passwd $user >/dev/null || useradd --create-home --shell /bin/bash $user
home=$(getent passwd $user | cut -d: -f6)
copy=$home/checkout modules=$home/modules

rm -rf "$copy"
mkdir -p "$copy" "$modules"
{
	git ls-files -z --cached --others --exclude-standard
	find . -path ./bin -prune -o -name node_modules -prune -print0
} | tar --create --null --files-from=- --ignore-failed-read | tar --extract --directory "$copy"
chown -R $user: "$copy"

needed=$modules/needed-$(cat go.mod go.sum | git hash-object --stdin)
[ -e "$needed" ] || {
	GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" GOMODCACHE=$modules GOFLAGS=-modcacherw \
		go list -deps -test ./... >/dev/null
	touch "$needed"
	chown -R $user: "$modules"
}

# Whatever `go env -w` has set for root holds for the user too.
cd "$copy"
exec runuser -u $user -- env GOPROXY="$(go env GOPROXY)" GOSUMDB="$(go env GOSUMDB)" \
	GOMODCACHE="$modules" GOCACHE="$home/build" "$@"
