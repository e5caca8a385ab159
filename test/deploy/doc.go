// Package deploy tests the files in deploy, .ci and .github, and scripts/install.sh. Every
// query must ask for metrics that docs/reference/telemetry.md lists, and every alert
// must fire when it should and not otherwise. The package is a module of its own, so
// that Prometheus' and Compose's libraries are no dependencies of the product.
package deploy
