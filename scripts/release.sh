#!/usr/bin/env bash
# release.sh VERSION: builds the files of a release into dist/: an archive for each
# platform, an SBOM for each, install.sh and SHA256SUMS. The same commit, compiler and
# version give the same bytes. It needs GNU tar.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: release.sh VERSION}
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || {
	echo "release.sh: $version is not a version such as v1.2.3" >&2
	exit 2
}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)

rm -rf dist
mkdir -p dist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/common"
git archive HEAD LICENSE README.md CHANGELOG.md config.yaml docs deploy/systemd | tar -x -C "$work/common"
cp cmd/orchestrator/internal/licenses/third_party.txt "$work/common/THIRD_PARTY_LICENSES"

for platform in $platforms; do
	name=holdfast_${version#v}_${platform/\//_}
	echo "building dist/$name.tar.gz" >&2
	cp -r "$work/common" "$work/$name"
	GOOS=${platform%/*} GOARCH=${platform#*/} CGO_ENABLED=0 go build -trimpath -buildvcs=false \
		-ldflags "-s -w -X main.release=$version" -o "$work/$name/" ./cmd/...
	GOFLAGS=-trimpath go -C tools/release tool cyclonedx-gomod bin -json -noserial -std -version "$version" "$work/$name/orchestrator" 2>/dev/null |
		sed "s/\"timestamp\": \"[^\"]*\"/\"timestamp\": \"$date\"/" >"dist/$name.cdx.json"
	chmod -R u=rwX,go=rX "$work/$name"
	tar -C "$work" --create --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" \
		--owner=0 --group=0 --numeric-owner "$name" | gzip --no-name >"dist/$name.tar.gz"
	rm -rf "${work:?}/$name"
done
cp scripts/install.sh dist/
(cd dist && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
