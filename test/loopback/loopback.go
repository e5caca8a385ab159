// Package loopback finds addresses for servers that tests start.
package loopback

import (
	"context"
	"math/rand/v2"
	"net"
	"runtime"
)

// FreeAddress returns an address, host:port, on which a program can listen soon. On Linux
// its host is a random one of the loopback's 127.0.0.0/8: connections go out from
// 127.0.0.1, so none of them takes the port before the program does. It fails if no port is free.
func FreeAddress(ctx context.Context) (string, error) {
	host := "127.0.0.1"
	if runtime.GOOS == "linux" {
		host = net.IPv4(127, byte(1+rand.IntN(255)), byte(rand.IntN(256)), byte(1+rand.IntN(254))).String() //nolint:gosec // no secret
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", host+":0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
