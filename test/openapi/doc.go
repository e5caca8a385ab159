// Package openapi tests the API's OpenAPI description from outside: with
// other people's validators, against a real server, and through a client that
// is generated from it. It is a module of its own, so that the tools it needs
// are no dependencies of the product.
package openapi
