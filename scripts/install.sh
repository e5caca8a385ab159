#!/bin/sh
# install.sh: installs a release of Holdfast, the programs orchestrator and handlers,
# for Linux or macOS:
#
#   curl -fsSL https://github.com/holdfast-jobs/holdfast/releases/latest/download/install.sh | sh
#
# HOLDFAST_VERSION   the release, such as v1.2.3; the latest one by default
# HOLDFAST_DIR       where the programs go; /usr/local/bin for root, else ~/.local/bin
# HOLDFAST_RELEASES  where releases are, for mirrors
set -eu

releases=${HOLDFAST_RELEASES:-https://github.com/holdfast-jobs/holdfast/releases}
version=${HOLDFAST_VERSION:-latest}
if [ -n "${HOLDFAST_DIR:-}" ]; then
	dir=$HOLDFAST_DIR
elif [ "$(id -u)" = 0 ]; then
	dir=/usr/local/bin
else
	dir=${HOME:?set HOME or HOLDFAST_DIR}/.local/bin
fi

refuse() {
	echo "install.sh: $*" >&2
	exit 1
}

fetch() {
	if command -v curl >/dev/null; then
		curl -fsSL --retry 3 -o "$2" "$1"
	elif command -v wget >/dev/null; then
		wget -q -O "$2" "$1"
	else
		refuse "install curl or wget first"
	fi || refuse "cannot download $1"
}

sha256() {
	if command -v sha256sum >/dev/null; then
		sha256sum "$1"
	elif command -v shasum >/dev/null; then
		shasum -a 256 "$1"
	else
		refuse "install sha256sum or shasum first: the download must be verified"
	fi | cut -d ' ' -f 1
}

# All of it is in a function, so that a download that breaks off runs nothing.
install() {
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) refuse "there is no release for $(uname -s), only for Linux and macOS" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) refuse "there is no release for $(uname -m), only for amd64 and arm64" ;;
	esac
	case $version in
	latest) from=$releases/latest/download ;;
	v[0-9]*) from=$releases/download/$version ;;
	*) refuse "HOLDFAST_VERSION=$version is not a version such as v1.2.3" ;;
	esac

	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM

	# The list of checksums also says which version the latest one is.
	fetch "$from/SHA256SUMS" "$work/SHA256SUMS"
	archive=$(sed -n "s/^[0-9a-f]\{64\}  \(holdfast_[0-9A-Za-z.-]*_${os}_$arch\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS")
	[ -n "$archive" ] || refuse "$from/SHA256SUMS names no archive for $os/$arch"
	wanted=$(sed -n "s/^\([0-9a-f]\{64\}\)  $archive\$/\1/p" "$work/SHA256SUMS")

	fetch "$from/$archive" "$work/$archive"
	got=$(sha256 "$work/$archive")
	[ "$got" = "$wanted" ] || refuse "$archive has the checksum $got, not $wanted: nothing was installed"

	tar -xzf "$work/$archive" -C "$work"
	unpacked=$work/${archive%.tar.gz}
	mkdir -p "$dir" 2>/dev/null || refuse "cannot make $dir: run this as root, or set HOLDFAST_DIR"
	[ -w "$dir" ] || refuse "cannot write to $dir: run this as root, or set HOLDFAST_DIR"
	for program in orchestrator handlers; do
		# A program that runs cannot be written over, but it can be replaced.
		cp "$unpacked/$program" "$dir/.$program.new"
		chmod 755 "$dir/.$program.new"
		mv "$dir/.$program.new" "$dir/$program"
	done
	echo "installed orchestrator and handlers of ${archive%.tar.gz} in $dir"
	case :$PATH: in
	*:$dir:*) ;;
	*) echo "add $dir to your PATH" ;;
	esac
}

install
