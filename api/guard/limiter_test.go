package guard_test

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

func tenJobs() guard.Config {
	return guard.Config{
		PerMinute:      map[guard.Limit]int{guard.Jobs: 10},
		Exempt:         []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("203.0.113.0/24")},
	}
}

func TestCountedAnswersTellTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := behind(tenJobs(), 4)
		answer := s.from("192.0.2.1", "/jobs")
		require.Equal(t, 200, answer.Code)
		require.Equal(t, `"jobs";q=10;w=60`, answer.Header().Get("RateLimit-Policy"))
		require.Equal(t, `"jobs";r=6;t=120`, answer.Header().Get("RateLimit"))
		time.Sleep(15 * time.Second)
		require.Equal(t, `"jobs";r=2;t=105`, s.from("192.0.2.1", "/jobs").Header().Get("RateLimit"))

		answer = s.from("192.0.2.1", "/jobs")
		require.Equal(t, 429, answer.Code)
		require.Equal(t, `"jobs";r=2;t=105`, answer.Header().Get("RateLimit"))
		require.Equal(t, "60", answer.Header().Get("Retry-After"))
		require.Equal(t, "the rate limit is reached", answer.Body.String())
		time.Sleep(60 * time.Second)
		require.Equal(t, 200, s.from("192.0.2.1", "/jobs").Code)
	})
}

func TestARequestForMoreThanTheWholeLimitSaysSo(t *testing.T) {
	answer := behind(tenJobs(), 11).from("192.0.2.1", "/jobs")
	require.Equal(t, 429, answer.Code)
	require.Equal(t, "11 at once is more than the rate limit allows in a minute, 10", answer.Body.String())
	require.Empty(t, answer.Header().Get("Retry-After"), "no wait would help")
}

func TestClientsAreDistinguishedByTheirNetwork(t *testing.T) {
	for _, c := range []struct {
		name, peer, forwarded   string
		otherPeer, otherForward string
		same                    bool
	}{
		{name: "two addresses", peer: "192.0.2.1", otherPeer: "192.0.2.2"},
		{name: "one address", peer: "192.0.2.1", otherPeer: "192.0.2.1", same: true},
		{name: "IPv4 in IPv6", peer: "192.0.2.1", otherPeer: "::ffff:192.0.2.1", same: true},
		{name: "one /64", peer: "2001:db8::1", otherPeer: "2001:db8::ffff:2", same: true},
		{name: "two /64", peer: "2001:db8::1", otherPeer: "2001:db8:0:1::1"},
		{name: "zones", peer: "fe80::1%a", otherPeer: "fe80::2%b", same: true},
		{name: "anybody can send the header", peer: "192.0.2.1", forwarded: "198.51.100.1", otherPeer: "192.0.2.1", otherForward: "198.51.100.2", same: true},
		{name: "behind a proxy", peer: "203.0.113.1", forwarded: "198.51.100.1", otherPeer: "203.0.113.1", otherForward: "198.51.100.2"},
		{name: "behind two proxies", peer: "203.0.113.1", forwarded: "198.51.100.1, 203.0.113.9", otherPeer: "203.0.113.2", otherForward: "198.51.100.1", same: true},
		{name: "what a client puts in front", peer: "203.0.113.1", forwarded: "1.1.1.1, 198.51.100.1", otherPeer: "203.0.113.1", otherForward: "10.0.0.1, 198.51.100.1", same: true},
		{name: "a proxy that names nobody", peer: "203.0.113.1", otherPeer: "127.0.0.1", otherForward: "nonsense", same: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := behind(tenJobs(), 10)
			header := func(forwarded string) []string {
				if forwarded == "" {
					return nil
				}
				return []string{"X-Forwarded-For: " + forwarded}
			}
			require.Equal(t, 200, s.from(c.peer, "/jobs", header(c.forwarded)...).Code)
			want := 200
			if c.same {
				want = 429
			}
			require.Equal(t, want, s.from(c.otherPeer, "/jobs", header(c.otherForward)...).Code)
		})
	}
}

func TestARotatingHeaderDoesNotEscapeTheLimit(t *testing.T) {
	s := behind(tenJobs(), 1)
	answered := map[int]int{}
	for i := range 100 {
		answered[s.from("192.0.2.1", "/jobs", fmt.Sprintf("X-Forwarded-For: 10.0.0.%d", i)).Code]++
	}
	require.Equal(t, map[int]int{200: 10, 429: 90}, answered)
}

func TestExemptIsTheClientNotItsProxy(t *testing.T) {
	s := behind(tenJobs(), 11)
	require.Equal(t, 200, s.from("10.1.2.3", "/jobs").Code)
	require.Empty(t, s.from("10.1.2.3", "/jobs").Header().Get("RateLimit"), "what is not counted is not told")
	require.Equal(t, 200, s.from("203.0.113.1", "/jobs", "X-Forwarded-For: 10.1.2.3").Code)
	require.Equal(t, 429, s.from("127.0.0.1", "/jobs", "X-Forwarded-For: 192.0.2.1").Code)
	require.Equal(t, 429, s.from("127.0.0.1", "/jobs").Code, "a proxy that names nobody")
}

func TestTokensAreCountedWhereverTheyComeFrom(t *testing.T) {
	config := tenJobs()
	config.Access = everybody()
	s := behind(config, 6)
	require.Equal(t, 200, s.from("192.0.2.1", "/jobs", bearer(acmeToken)).Code)
	require.Equal(t, 429, s.from("192.0.2.2", "/jobs", bearer(acmeToken)).Code, "the same token")
	require.Equal(t, 429, s.from("192.0.2.1", "/jobs", bearer(readToken)).Code, "the same address")
	require.Equal(t, 200, s.from("192.0.2.2", "/jobs", bearer(readToken)).Code, "neither")
	require.Equal(t, 200, s.from("192.0.2.3", "/jobs", basic("admin", password)).Code)
	require.Equal(t, 429, s.from("192.0.2.4", "/jobs", basic("admin", password)).Code)
}
