package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

var errPrivateAddress = errors.New("it is not a public address")

// notPublic are the ranges that no job may reach, besides those that netip knows:
// IANA's special-purpose addresses, and those that translate to IPv4 addresses.
var notPublic = parsePrefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

// publicIPv6 is what IANA has assigned to the public. NAT64 (64:ff9b::/96) and other
// ranges that stand for IPv4 addresses are not in it.
var publicIPv6 = netip.MustParsePrefix("2000::/3")

func parsePrefixes(texts ...string) []netip.Prefix {
	prefixes := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		prefixes[i] = netip.MustParsePrefix(text)
	}
	return prefixes
}

func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && (ip.Is4() || publicIPv6.Contains(ip)) &&
		!slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// refusePrivate checks the address just before the connection, when no name and no
// redirect can change it. Its errors name the variable that allows the address.
func refusePrivate(variable string) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if !isPublic(target.Addr()) {
			return fmt.Errorf("connect to %s: %w; %s=true allows it", target.Addr(), errPrivateAddress, variable)
		}
		return nil
	}
}

const maxRedirects = 10

func newRequester(allowPrivate bool) requester {
	client := newClient(allowPrivate, "HTTP_REQUEST_ALLOW_PRIVATE")
	client.CheckRedirect = checkRedirect
	return requester{client: client}
}

// newClient makes a client that refuses addresses that are not public, unless they are
// allowed, which the variable does. It uses no proxy, which would connect instead of this
// process.
func newClient(allowPrivate bool, variable string) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if !allowPrivate {
		dialer.ControlContext = refusePrivate(variable)
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    10 * time.Second,
			IdleConnTimeout:        30 * time.Second,
			MaxIdleConns:           2 * concurrency,
			MaxIdleConnsPerHost:    concurrency,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}
}

// checkRedirect keeps the headers of a job from other servers and from the clear: it
// removes them when the host changes or TLS ends. refusePrivate checks the address.
func checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	first := via[0].URL
	if next.URL.Host == first.Host && (next.URL.Scheme == "https" || first.Scheme == "http") {
		return nil
	}
	for name := range next.Header {
		if name != "User-Agent" && name != "Accept" {
			next.Header.Del(name)
		}
	}
	return nil
}

// steerTransport decides what an error without a response means for the job.
func steerTransport(err error) error {
	if errors.Is(err, errPrivateAddress) {
		return plugin.Code(plugin.Permanent(err), "private_address")
	}
	return plugin.Code(err, "no_response")
}
