package main

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin"
)

func TestOnlyPublicAddressesAreCalled(t *testing.T) {
	for _, address := range []string{
		"0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.0.1", "169.254.169.254", "172.16.0.1", "192.168.1.1",
		"192.0.0.8", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "::ffff:0:7f00:1", "100::1",
		"2002:7f00:1::", "2001::1", "3fff::1", "5f00::1", "4000::1",
		"fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2001:db8::1",
	} {
		require.False(t, isPublic(netip.MustParseAddr(address)), address)
	}
	for _, address := range []string{"1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:1.1.1.1"} {
		require.True(t, isPublic(netip.MustParseAddr(address)), address)
	}
}

func TestAPrivateServerIsNotCalledByAnyName(t *testing.T) {
	called := false
	url := serving(t, func(http.ResponseWriter, *http.Request) { called = true })
	for _, target := range []string{
		url, strings.Replace(url, "127.0.0.1", "localhost", 1), strings.Replace(url, "127.0.0.1", "[::ffff:127.0.0.1]", 1),
		strings.Replace(url, "127.0.0.1", "0", 1), "http://[::1]/",
	} {
		_, err := asking(t, false).request(t.Context(), requestJob(t, map[string]any{"method": "GET", "url": target}))
		require.Error(t, err, target)
		require.False(t, called, target)
	}
	_, err := asking(t, false).request(t.Context(), requestJob(t, map[string]any{"method": "GET", "url": url + "/way?key=SECRET"}))
	require.NotContains(t, err.Error(), "/way", "neither path nor query is in an error")
	require.NotContains(t, err.Error(), "SECRET")
	require.Equal(t, plugin.Verdict{Permanent: true, Code: "private_address"}, plugin.VerdictOf(err))
}

// A redirect is dialed by the same dialer. Here the first server must be
// allowed, so the second hop is what is looked at.
func TestARedirectKeepsSecretsFromOtherHosts(t *testing.T) {
	headers := make(chan http.Header, 1)
	other := serving(t, func(_ http.ResponseWriter, r *http.Request) { headers <- r.Header })
	first := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/here" {
			headers <- r.Header
			return
		}
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	for target, kept := range map[string]bool{"/here": true, other: false} {
		_, err := asking(t, true).request(t.Context(), requestJob(t, map[string]any{
			"method": "GET", "url": first + "?to=" + target,
			"headers": map[string]string{"Authorization": "secret", "X-Api-Key": "secret"},
		}))
		require.NoError(t, err)
		got := <-headers
		for _, name := range []string{"Authorization", "X-Api-Key", "Idempotency-Key"} {
			require.Equal(t, kept, got.Get(name) != "", "%s to %s", name, target)
		}
	}
}

func TestRedirectsEnd(t *testing.T) {
	url := serving(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) })
	_, err := asking(t, true).request(t.Context(), requestJob(t, map[string]any{"method": "GET", "url": url}))
	require.ErrorContains(t, err, "10 redirects")
}

// The first hop is let through, as a public server would be; its redirect is
// not.
func TestARedirectToAPrivateServerIsRefused(t *testing.T) {
	called := false
	private := serving(t, func(http.ResponseWriter, *http.Request) { called = true })
	public := serving(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, private, http.StatusFound) })
	guarded := asking(t, false)
	first := asking(t, true).client.Transport
	guarded.client.Transport = byHost{strings.TrimPrefix(public, "http://"): first, "": guarded.client.Transport}
	_, err := guarded.request(t.Context(), requestJob(t, map[string]any{"method": "GET", "url": public}))
	require.ErrorIs(t, err, errPrivateAddress)
	require.True(t, permanent(err))
	require.False(t, called)
}

type byHost map[string]http.RoundTripper

func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if transport, ok := b[r.URL.Host]; ok {
		return transport.RoundTrip(r)
	}
	return b[""].RoundTrip(r)
}
