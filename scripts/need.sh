#!/usr/bin/env bash
# need.sh THING...: makes sure that every thing is installed. On Debian and Ubuntu it
# installs what is missing, as root or with a sudo that needs no password; elsewhere it
# fails and prints the command. Things: gcc postgres postgres-14 (or another version)
# protoc docker python mypy node chromium debootstrap jq spin nginx haproxy pgbouncer pgbouncer-1.21
# (or newer; where Debian has an older one, its sources are built). For jaeger it prints how to get one.
set -euo pipefail
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

present() {
	case $1 in
	gcc) command -v gcc || command -v clang ;;
	protoc) command -v protoc ;;
	debootstrap) command -v debootstrap ;;
	jq) command -v jq && command -v curl ;;
	docker) command -v docker && command -v dockerd && command -v ip ;;
	python) imports python3 || imports /usr/bin/python3 ;;
	mypy) command -v mypy ;;
	spin | nginx | haproxy) command -v "$1" ;;
	pgbouncer) command -v pgbouncer ;;
	pgbouncer-[0-9]*) poolers "${1#*-}" ;;
	node) command -v node && command -v npm ;;
	chromium) command -v chromium || command -v google-chrome ;;
	jaeger)
		[ -n "${HOLDFAST_JAEGER_URL:-}" ] || {
			echo "no Jaeger: run 'make compose-up' (or 'docker run --rm -p 127.0.0.1:16686:16686 -p 127.0.0.1:4317:4317 jaegertracing/jaeger:2.20.0')" \
				"and set HOLDFAST_JAEGER_URL=http://127.0.0.1:16686; without Docker: 'scripts/jaeger.sh make test-jaeger'" >&2
			exit 1
		}
		;;
	postgres-[0-9]*) [ -x "/usr/lib/postgresql/${1#*-}/bin/initdb" ] ;;
	postgres)
		# Tests use a server that is given, and need no binaries then.
		[ -n "${HOLDFAST_TEST_DATABASE_URL:-}" ] || command -v initdb ||
			compgen -G '/usr/lib/postgresql/*/bin/initdb' || compgen -G '/usr/pgsql-*/bin/initdb' ||
			compgen -G '/opt/homebrew/opt/postgresql*/bin/initdb' || compgen -G '/usr/local/opt/postgresql*/bin/initdb'
		;;
	*)
		echo "need.sh: unknown thing $1" >&2
		exit 2
		;;
	esac >/dev/null
}

# poolers VERSION: those that are installed and have at least this version. The last place is
# where a built one goes; internal/pgbouncer looks in the same ones.
poolers() {
	local found=1 path version
	for path in $(command -v pgbouncer) /usr/local/bin/pgbouncer-[0-9]*; do
		version=$("$path" --version 2>/dev/null | awk 'NR == 1 { print $2 }') || continue
		[ -n "$version" ] && [ "$(printf '%s\n' "$1" "$version" | sort -V | head -n 1)" = "$1" ] && echo "$path" && found=0
	done
	return $found
}

imports() { "$1" -c 'import setuptools, wheel, pip, ensurepip, grpc, google.protobuf' 2>/dev/null; }

debian() {
	case $1 in
	gcc) echo gcc libc6-dev ;;
	protoc) echo protobuf-compiler ;;
	debootstrap) echo debootstrap ;;
	jq) echo jq curl ;;
	docker) echo docker.io iproute2 ;;
	postgres) echo postgresql ;;
	postgres-*) echo "postgresql-${1#*-}" ;;
	python) echo python3-grpcio python3-protobuf python3-venv python3-pip python3-setuptools python3-wheel ;;
	mypy) echo mypy ;;
	spin | nginx | haproxy) echo "$1" ;;
	pgbouncer) echo pgbouncer ;;
	pgbouncer-*)
		if [ "$(printf '%s\n' "${1#*-}" "$(apt-cache show --no-all-versions pgbouncer 2>/dev/null | sed -n 's/^Version: //p')" | sort -V | head -n 1)" = "${1#*-}" ]; then
			echo pgbouncer
		else
			echo gcc make libc6-dev pkg-config libevent-dev libssl-dev dpkg-dev
		fi
		;;
	node) echo nodejs npm ;;
	chromium) echo chromium ;;
	esac
}

# build_pooler builds PgBouncer as the next Debian has it, from the mirror that this one uses.
# It leaves the system's lists of packages alone.
build_pooler() (
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Component: main' | grep -m 1 /debian$)
	mkdir -p "$dir/lists/partial"
	echo "deb-src $mirror trixie main" >"$dir/sources.list"
	apt=(apt-get -qq -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::Lists="$dir/lists"
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)
	cd "$dir"
	"${apt[@]}" update
	"${apt[@]}" source --download-only pgbouncer
	dpkg-source --no-check -x pgbouncer_*.dsc source
	cd source
	./configure --without-cares --without-systemd --without-pam
	make pgbouncer
	version=$(./pgbouncer --version | awk 'NR == 1 { print $2 }')
	"${root[@]}" cp pgbouncer "/usr/local/bin/pgbouncer-$version"
)

packages=()
for thing in "$@"; do
	present "$thing" || read -ra packages <<<"${packages[*]} $(debian "$thing")"
done
[ ${#packages[@]} -gt 0 ] || exit 0

root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)
if ! command -v apt-get >/dev/null || ! "${root[@]}" true 2>/dev/null; then
	echo "missing: install the equivalent of: sudo apt-get install -y ${packages[*]}" >&2
	exit 1
fi

# The packages must not start services: tests start what they need.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee $policy >/dev/null
	"${root[@]}" chmod +x $policy
	trap '"${root[@]}" rm -f $policy' EXIT
fi
install() {
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" </dev/null
}
echo "installing ${packages[*]}" >&2
install "${packages[@]}" >/dev/null 2>&1 || {
	"${root[@]}" apt-get update -qq </dev/null
	# A distribution has one version of PostgreSQL; PostgreSQL's own archive has them all.
	if [[ "${packages[*]}" =~ postgresql-[0-9] ]]; then
		install postgresql-common ca-certificates >&2
		"${root[@]}" /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y </dev/null >&2
	fi
	install "${packages[@]}" >&2
}
for thing in "$@"; do
	case $thing in
	pgbouncer-[0-9]*)
		present "$thing" && continue
		echo "building PgBouncer" >&2
		log=$(mktemp)
		build_pooler >"$log" 2>&1 </dev/null & # not in a list, where errors would not end it
		wait $! || {
			tail -n 20 "$log" >&2
			echo "missing: install PgBouncer ${thing#*-} or newer, such as PostgreSQL's own archive has" >&2
			exit 1
		}
		rm -f "$log"
		;;
	esac
done
