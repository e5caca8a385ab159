package guard_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

// forgeries are values of X-Forwarded-For with which a client claims to be on this
// machine. Each line is a header of its own.
var forgeries = []string{
	"::1", "127.0.0.1", "127.0.0.2", "127.255.255.254", "::ffff:127.0.0.9", "::ffff:7f00:1", "::1%lo",
	"::1, 127.0.0.1", "127.0.0.2, 127.0.0.1", "127.0.0.2\n127.0.0.1", "192.0.2.9\n::1", "192.0.2.9, 127.0.0.3",
	"::1\n192.0.2.9", "127.0.0.2, 192.0.2.9", "", "localhost", "[::1]:80", "127.0.0.2:80",
}

// anOpenGuard configures a guard that trusts the proxies. Unless withTokens, it asks
// local clients for no credentials.
func anOpenGuard(withTokens bool, proxies ...string) guard.Config {
	access := everybody()
	access.Closed = withTokens
	if !withTokens {
		access.Tokens = nil
	}
	config := guard.Config{Access: access}
	for _, network := range proxies {
		config.TrustedProxies = append(config.TrustedProxies, netip.MustParsePrefix(network))
	}
	return config
}

func forwardedFor(lines string) []string {
	var headers []string
	for line := range strings.SplitSeq(lines, "\n") {
		headers = append(headers, "X-Forwarded-For: "+line)
	}
	return headers
}

func TestAClientNamedByAProxyIsNeverThisMachine(t *testing.T) {
	for name, c := range map[string]struct {
		peer    string
		proxies []string
	}{
		"a proxy on this machine":             {"127.0.0.1", []string{"127.0.0.1/32"}},
		"one over IPv6":                       {"::1", []string{"::1/128"}},
		"one that is mapped into IPv6":        {"::ffff:127.0.0.1", []string{"127.0.0.1/32"}},
		"every loopback address":              {"127.0.0.1", []string{"127.0.0.0/8", "::1/128"}},
		"a proxy elsewhere":                   {"203.0.113.1", []string{"203.0.113.0/24"}},
		"a proxy here that nobody configured": {"127.0.0.1", nil},
		"another than the configured one":     {"127.0.0.1", []string{"203.0.113.0/24"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, forged := range forgeries {
				for _, withTokens := range []bool{false, true} {
					s := behind(anOpenGuard(withTokens, c.proxies...), 1)
					require.Equal(t, 401, s.from(c.peer, "/jobs", forwardedFor(forged)...).Code, "%q, tokens %v", forged, withTokens)
					answer := s.from(c.peer, "/jobs", append(forwardedFor(forged), basic("admin", password))...)
					require.Equal(t, 200, answer.Code, "with credentials: %q, tokens %v", forged, withTokens)
				}
			}
		})
	}
}

func TestThisMachineNeedsNoCredentialsBesideATrustedProxy(t *testing.T) {
	s := behind(anOpenGuard(false, "203.0.113.0/24", "127.0.0.2/32"), 1)
	require.Equal(t, 200, s.from("127.0.0.1", "/jobs").Code)
	require.Equal(t, 200, s.from("::1", "/jobs").Code)
	require.Equal(t, 401, s.from("127.0.0.2", "/jobs").Code, "the proxy itself names nobody")
	for _, header := range []string{"Forwarded: for=::1", "Via: 1.1 proxy", "X-Real-IP: ::1", "X-Forwarded-Host: localhost", "X-Forwarded-For: "} {
		require.Equal(t, 401, s.from("127.0.0.1", "/jobs", header).Code, header)
	}
}

func TestALoopbackAddressNamedByAProxyIsNotExempt(t *testing.T) {
	for _, forged := range []string{"::1", "127.0.0.2", "::ffff:127.0.0.9", "127.0.0.2, 203.0.113.7"} {
		s := behind(tenJobs(), 11)
		require.Equal(t, 429, s.from("203.0.113.1", "/jobs", "X-Forwarded-For: "+forged).Code, forged)
		require.Equal(t, 429, s.from("127.0.0.1", "/jobs", "X-Forwarded-For: "+forged).Code, forged)
	}
}

// TestAProxyThatPassesTheHeaderOnOpensNothing runs a real proxy, which passes
// on what its client sends as a plain proxy_pass of nginx does, and adds no
// header itself.
func TestAProxyThatPassesTheHeaderOnOpensNothing(t *testing.T) {
	config := anOpenGuard(false, "127.0.0.1/32", "::1/128")
	config.Log = slog.New(slog.DiscardHandler)
	g := guard.New(config)
	refuse := func(w http.ResponseWriter, status int, _ string) { w.WriteHeader(status) }
	accept := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	server := httptest.NewServer(g.Client(g.Admit(refuse)(accept)))
	defer server.Close()
	target, err := url.Parse(server.URL)
	require.NoError(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target) // And the host, as nginx does.
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		},
		Transport: &http.Transport{DisableKeepAlives: true},
	})
	defer proxy.Close()

	for _, forged := range forgeries {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL+"/jobs", nil)
		require.NoError(t, err)
		request.Header["X-Forwarded-For"] = strings.Split(forged, "\n")
		status := func() int {
			answer, err := proxy.Client().Do(request)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			return answer.StatusCode
		}
		require.Equal(t, http.StatusUnauthorized, status(), "%q", forged)
		request.SetBasicAuth("admin", password)
		require.Equal(t, http.StatusAccepted, status(), "%q", forged)
	}
	require.True(t, net.ParseIP(target.Hostname()).IsLoopback(), "or the test shows nothing")
}
