#!/usr/bin/env bash
# postgres-image.sh IMAGE: makes a Docker image from the PostgreSQL installed here, for
# machines without access to a registry. It supports these variables of the official
# image: POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB.
set -euo pipefail
image=${1:?usage: postgres-image.sh IMAGE}

bin=$(compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -n 1)
[ -x "$bin/initdb" ] || {
	echo "no PostgreSQL below /usr/lib/postgresql" >&2
	exit 1
}
lib=$("$bin/pg_config" --pkglibdir)
share=$("$bin/pg_config" --sharedir)

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
root=$context/root
mkdir -p "$root"/{bin,etc,tmp,run/postgresql,var/lib/postgresql/data}
ln -s ../run "$root/var/run"

add() { (cd / && cp --parents -aL "${@#/}" "$root"); }

# The programs that the server and the script below call.
tools=()
for tool in sh locale id mkdir chown chmod setpriv; do
	tools+=("$(readlink -f "$(command -v $tool)")")
done
add "${tools[@]}" "$bin" "$share" /usr/share/zoneinfo
for tool in sh locale id mkdir chown chmod setpriv; do
	ln -sf "$(readlink -f "$(command -v $tool)")" "$root/bin/$tool"
done
# All modules except the JIT compiler, which is larger than all others together.
mapfile -t modules < <(find "$lib" -name '*.so' ! -name 'llvmjit*')
add "${modules[@]}"
mapfile -t libraries < <(ldd "${tools[@]}" "$bin"/* "${modules[@]}" 2>/dev/null |
	grep -oE '/[^ :]+\.so[^ :]*' | grep -v "^$lib" | sort -u)
add "${libraries[@]}"

printf 'root:x:0:0::/:/bin/sh\npostgres:x:70:70::/var/lib/postgresql:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\npostgres:x:70:\n' >"$root/etc/group"
chmod 1777 "$root/tmp"

cat >"$root/bin/entrypoint" <<'SCRIPT'
#!/bin/sh
set -eu
if [ "$(id -u)" = 0 ]; then
	mkdir -p "$PGDATA"
	chown -R postgres:postgres "$PGDATA" /run/postgresql
	chmod 700 "$PGDATA"
	exec setpriv --reuid postgres --regid postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	user=${POSTGRES_USER:-postgres}
	printf '%s\n' "${POSTGRES_PASSWORD:?}" >/tmp/password
	initdb -D "$PGDATA" -U "$user" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 \
		-E UTF8 --no-locale --no-sync --no-instructions
	echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
	echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
	# Nobody can connect from outside before the database is complete.
	pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
	if [ "${POSTGRES_DB:=$user}" != postgres ]; then
		createdb -U "$user" --maintenance-db=postgres "$POSTGRES_DB"
	fi
	pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@"
SCRIPT
chmod +x "$root/bin/entrypoint"

tar -C "$root" -cf "$context/root.tar" .
rm -rf "$root"
cat >"$context/Dockerfile" <<DOCKERFILE
FROM scratch
ADD root.tar /
ENV PATH=$bin:/bin PGDATA=/var/lib/postgresql/data
EXPOSE 5432
STOPSIGNAL SIGINT
ENTRYPOINT ["/bin/entrypoint"]
CMD ["postgres"]
DOCKERFILE
# BuildKit is a plugin that may be missing.
DOCKER_BUILDKIT=0 docker build --quiet --tag "$image" "$context" >/dev/null 2>"$context/log" || {
	cat "$context/log" >&2
	exit 1
}
