#!/usr/bin/env bash
# secrets.sh [DIRECTORY]: makes the secrets that compose.yaml needs, in deploy/secrets or
# the directory. Existing secrets stay as they are.
set -euo pipefail
directory=${1:-$(dirname "$0")/secrets}
umask 077
# Nobody else can enter the directory. Containers run as other users and must be able to
# read some of the files, which are mounted one by one.
mkdir -p "$directory"
chmod 700 "$directory"
cd "$directory"

random() { head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }

# keep FILE MODE: writes standard input to the file, completely or not at all. If several
# processes do so at once, one of them succeeds.
keep() {
	local draft
	draft=$(mktemp ".$1-XXXXXX")
	cat >"$draft"
	chmod "$2" "$draft"
	ln "$draft" "$1" 2>/dev/null || [ -e "$1" ]
	rm -f "$draft"
}

sha256() {
	if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1
}

[ -e postgres_password ] || random 24 | keep postgres_password 0444
[ -e grafana_password ] || random 16 | keep grafana_password 0444
[ -e prometheus_token ] || random 32 | keep prometheus_token 0444
# In the form that curl -u takes.
[ -e operator ] || printf 'admin:%s\n' "$(random 16)" | keep operator 0600

# orchestrator.env is made from the other files each time, so you can replace any of them.
operator=$(cat operator)
keep_environment() {
	local draft
	draft=$(mktemp .orchestrator-XXXXXX)
	cat >"$draft"
	mv "$draft" orchestrator.env
}
keep_environment <<ENV
HOLDFAST_DATABASE__URL=postgres://holdfast:$(cat postgres_password)@postgres:5432/holdfast?sslmode=disable
HOLDFAST_SECURITY__PASSWORD=${operator#*:}
HOLDFAST_SECURITY__TOKENS__0__NAME=prometheus
HOLDFAST_SECURITY__TOKENS__0__TOKEN_SHA256=$(tr -d '\n' <prometheus_token | sha256)
HOLDFAST_SECURITY__TOKENS__0__SCOPES=observe
ENV
