#!/usr/bin/env bash
# base-image.sh KIND IMAGE: makes a replacement for a base image from what is installed
# here, for machines without access to a registry. Kinds:
#   go      the installed Go, with the modules of go.mod, and a shell
#   static  the contents of distroless/static: /tmp, users, certificates
#   debian  Debian by debootstrap, which needs root and a Debian mirror
set -euo pipefail
kind=${1:?usage: base-image.sh go|static|debian IMAGE} image=${2:?usage: base-image.sh go|static|debian IMAGE}
cd "$(dirname "$0")/.."

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
root=$context/root
mkdir -p "$root"/{etc,tmp,bin}
chmod 1777 "$root/tmp"
environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

users() {
	printf 'root:x:0:0::/root:/sbin/nologin\nnonroot:x:65532:65532::/home/nonroot:/sbin/nologin\n' >"$root/etc/passwd"
	printf 'root:x:0:\nnonroot:x:65532:\n' >"$root/etc/group"
	mkdir -p "$root/etc/ssl/certs"
	[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
}

case $kind in
static) users ;;
go)
	users
	# A shell for RUN, with the libraries that it needs.
	shell=$(readlink -f "$(command -v sh)")
	mapfile -t libraries < <(ldd "$shell" | grep -oE '/[^ :]+\.so[^ :]*' | sort -u)
	(cd / && cp --parents -aL "${libraries[@]#/}" "$root")
	cp -aL "$shell" "$root/bin/sh"
	go=$(go env GOROOT)
	mkdir -p "$root/usr/local/go/pkg"
	cp -a "$go"/{bin,src,VERSION,go.env} "$root/usr/local/go/"
	cp -a "$go"/pkg/{include,tool} "$root/usr/local/go/pkg/"
	go mod download
	GOPROXY=file://$(go env GOMODCACHE)/cache/download GOMODCACHE=$root/go/pkg/mod GOFLAGS=-modcacherw go mod download
	environment="PATH=/usr/local/go/bin:/bin GOTOOLCHAIN=local GOPROXY=off GOPATH=/go GOCACHE=/tmp/cache HOME=/tmp"
	;;
debian)
	scripts/need.sh debootstrap
	rm -rf "$root"
	debootstrap --variant=minbase bookworm "$root" "${HOLDFAST_TEST_DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$context/log" 2>&1 || {
		tail -n 20 "$context/log" >&2
		exit 1
	}
	;;
*)
	echo "base-image.sh: unknown kind $kind" >&2
	exit 2
	;;
esac

tar -C "$root" --numeric-owner -cf "$context/root.tar" .
rm -rf "$root"
printf 'FROM scratch\nADD root.tar /\nENV %s\n' "$environment" >"$context/Dockerfile"
# BuildKit is a plugin that may be missing.
DOCKER_BUILDKIT=0 docker build --quiet --tag "$image" "$context" >/dev/null 2>"$context/log" || {
	cat "$context/log" >&2
	exit 1
}
