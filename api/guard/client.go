package guard

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-chi/chi/v5/middleware"
)

// Client finds out the address of the client and puts it into the request's
// context, for middleware.GetClientIP. It comes before everything that logs.
//
// The address is that of the peer, unless the peer is a trusted proxy: then
// it is the last one in X-Forwarded-For that is not a trusted proxy's. When a
// trusted proxy names none, the address stays unknown.
func (g *Guard) Client(next http.Handler) http.Handler {
	if g == nil || len(g.proxies) == 0 {
		return middleware.ClientIPFromRemoteAddr(next)
	}
	return middleware.ClientIPFromXFF(g.proxies...)(next)
}

// networkOf returns what counts as one client: an IPv4 address, or the /64
// network of an IPv6 address, since that is what one subscriber gets. All
// clients whose address is unknown count as one.
func networkOf(ctx context.Context) netip.Prefix {
	address := middleware.GetClientIPAddr(ctx).WithZone("")
	bits := 64
	if address.Is4() {
		bits = 32
	}
	network, err := address.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}

// isExempt is about the client, not the proxy that it came through.
func (g *Guard) isExempt(ctx context.Context) bool {
	address := middleware.GetClientIPAddr(ctx).WithZone("")
	for _, network := range g.exempt {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// isLocal reports whether the request was made on this machine: it comes from
// a loopback address, and names one. A page of another site that has its name
// resolve to a loopback address (DNS rebinding) gives itself away by the name.
func isLocal(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	named := net.ParseIP(host)
	return middleware.GetClientIPAddr(r.Context()).IsLoopback() &&
		(host == "localhost" || strings.HasSuffix(host, ".localhost") || named != nil && named.IsLoopback())
}
