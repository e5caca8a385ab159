#!/usr/bin/env bash
# as-user.sh COMMAND...: runs a command as an ordinary user, in a copy of this checkout
# that belongs to that user: scripts/as-user.sh make test. For root only. It makes the
# user, holdfast-test, when there is none. The user's caches stay for the next run. Modules
# come from root's cache, without the network, and so do packages that root has compiled:
# with -trimpath, those of another directory are the same.
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

[ -e "$home/build" ] || {
	rm -rf "$home/build.new" && mkdir "$home/build.new"
	# What root has used of late. Other builds may remove files meanwhile.
	(cd "$(go env GOCACHE)" && find . -type f -mmin -120 -print0 | tar --create --null --files-from=- --ignore-failed-read) |
		tar --extract --directory "$home/build.new"
	# Tests that passed for root have not passed for the user.
	GOCACHE=$home/build.new go clean -testcache
	chown -R $user: "$home/build.new"
	mv "$home/build.new" "$home/build"
}

# Whatever `go env -w` has set for root holds for the user too.
cd "$copy"
exec runuser -u $user -- env GOPROXY="$(go env GOPROXY)" GOSUMDB="$(go env GOSUMDB)" \
	GOMODCACHE="$modules" GOCACHE="$home/build" "$@"
