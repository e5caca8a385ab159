// Package ui tests the web UI in a real browser, Chromium, with the real program and a real
// PostgreSQL. It is a module of its own, so that its tools are no dependencies of the product.
package ui
