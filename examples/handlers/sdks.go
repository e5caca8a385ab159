// Package handlers has the SDKs of languages other than Go, which the orchestrator
// copies into new projects.
package handlers

import "embed"

// SDKs has python/holdfast, node/holdfast, and the packages that the latter needs
// in node/package-lock.json.
//
//go:embed python/holdfast/*.py python/holdfast/*.pyi python/holdfast/py.typed python/holdfast/pyproject.toml python/holdfast/README.md
//go:embed node/holdfast/*.js node/holdfast/package.json node/holdfast/README.md node/holdfast/lib/* node/package-lock.json
var SDKs embed.FS
