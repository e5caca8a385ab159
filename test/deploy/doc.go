// Package deploy tests what is in the directory deploy: that Compose, Docker and
// systemd are told what they should be, that every query asks for what
// docs/reference/telemetry.md lists, and that every alert fires when it should and not
// otherwise. It is a module of its own, so that Prometheus' and Compose's own
// libraries, which it reads the files with, are no dependencies of the product.
package deploy
