// Package openapi tests the API's OpenAPI description from outside: with third-party
// validators, against a real server, and through generated clients. It is a module of
// its own, so that its tools are no dependencies of the product.
package openapi
