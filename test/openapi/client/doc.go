// Package client is generated from api/openapi.yaml. It is not for use
// elsewhere: it shows that the description suffices to make one.
package client
