package guard

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5/middleware"
)

// forwarding are the headers with which proxies say that they forward a request.
var forwarding = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"}

// Client determines the address of the client and puts it into the request's
// context, for middleware.GetClientIP. It must come before everything that logs.
//
// The address is that of the peer. If the peer is a trusted proxy, it is the last
// address in X-Forwarded-For that does not belong to a trusted proxy. It stays unknown
// if the proxy sends no address or a loopback address. No other machine has a loopback
// address, and clients can write one into the header themselves.
func (g *Guard) Client(next http.Handler) http.Handler {
	if g == nil || len(g.proxies) == 0 {
		return middleware.ClientIPFromRemoteAddr(next)
	}
	networks := make([]string, 0, len(g.proxies))
	for _, network := range g.proxies {
		networks = append(networks, network.String())
	}
	fromHeader := middleware.ClientIPFromXFF(networks...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fromHeader(http.HandlerFunc(func(w http.ResponseWriter, known *http.Request) {
			if middleware.GetClientIPAddr(known.Context()).IsLoopback() && g.isProxy(r.RemoteAddr) {
				known = r // Its context has no address.
			}
			next.ServeHTTP(w, known)
		})).ServeHTTP(w, r)
	})
}

// isProxy reports whether a peer is a trusted proxy.
func (g *Guard) isProxy(peer string) bool {
	address, err := netip.ParseAddrPort(peer)
	return err == nil && contains(g.proxies, address.Addr().Unmap().WithZone(""))
}

// cameByTLS reports whether the client, or the one whose request a trusted proxy forwards, has
// sent it by TLS.
func (g *Guard) cameByTLS(r *http.Request) bool {
	return r.TLS != nil || g != nil && g.isProxy(r.RemoteAddr) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

func contains(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
}

// networkOf returns what counts as one client: an IPv4 address, or the /64 network
// of an IPv6 address, because one subscriber gets a whole one. All clients with an
// unknown address count as one.
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

// isExempt looks at the client's address, not at its proxy's.
func (g *Guard) isExempt(ctx context.Context) bool {
	return contains(g.exempt, middleware.GetClientIPAddr(ctx).WithZone(""))
}

// isLocal reports whether the request was made on this machine: it comes from a
// loopback address, its Host is a loopback address or localhost, and no proxy has
// forwarded it. A page of another site whose name resolves to a loopback address (DNS
// rebinding) has another Host.
func isLocal(r *http.Request) bool {
	for _, name := range forwarding {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	named := net.ParseIP(host)
	return middleware.GetClientIPAddr(r.Context()).IsLoopback() &&
		(host == "localhost" || strings.HasSuffix(host, ".localhost") || named != nil && named.IsLoopback())
}
