package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin"
)

const (
	aSecret       = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	anotherSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

// env is an environment that allows deliveries to the servers of tests.
func env(more map[string]string) func(string) string {
	all := map[string]string{"WEBHOOK_SECRETS": aSecret, "WEBHOOK_ALLOW_PRIVATE": "true"}
	for name, value := range more {
		all[name] = value
	}
	return func(name string) string { return all[name] }
}

// delivering returns the handler, whose connections are closed with the test.
func delivering(t *testing.T, more map[string]string) webhooks {
	t.Helper()
	w := newWebhooks(env(more))
	t.Cleanup(w.client.CloseIdleConnections)
	return w
}

func delivery(url string) plugin.Job[webhookArgs] {
	return plugin.Job[webhookArgs]{
		ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", Tenant: "default", Args: webhookArgs{URL: url, Event: json.RawMessage(`{"test": 2432232314}`)},
	}
}

// The vector is that of the reference implementations.
func TestASignatureIsThatOfStandardWebhooks(t *testing.T) {
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	j := delivery("https://example.com/")
	signed := func(w webhooks) string {
		request, err := w.newRequest(t.Context(), j, time.Unix(1614265330, 0))
		require.NoError(t, err)
		require.Equal(t, j.ID, request.Header.Get("webhook-id"))
		require.Equal(t, "1614265330", request.Header.Get("webhook-timestamp"))
		body, err := io.ReadAll(request.Body)
		require.NoError(t, err)
		require.Equal(t, `{"test": 2432232314}`, string(body), "byte for byte")
		return request.Header.Get("webhook-signature")
	}
	require.Equal(t, want, signed(delivering(t, nil)))

	both := strings.Fields(signed(delivering(t, map[string]string{"WEBHOOK_SECRETS": anotherSecret + ", " + aSecret})))
	require.Len(t, both, 2)
	require.Equal(t, want, both[1])
	require.NotEqual(t, want, both[0])

	own := delivering(t, map[string]string{"WEBHOOK_SECRETS": anotherSecret, "WEBHOOK_TENANT_SECRETS": `{"default": "` + aSecret + `"}`})
	require.Equal(t, want, signed(own), "a tenant's own secret replaces that of all")
	require.Empty(t, signed(delivering(t, map[string]string{"WEBHOOK_SECRETS": "", "WEBHOOK_UNSIGNED": "true"})))
}

func TestNothingIsDeliveredWithWrongSettings(t *testing.T) {
	called := false
	url := serving(t, func(http.ResponseWriter, *http.Request) { called = true })
	for name, c := range map[string]struct {
		env  map[string]string
		says string
	}{
		"no secret":       {map[string]string{"WEBHOOK_SECRETS": ""}, "set WEBHOOK_SECRETS"},
		"no prefix":       {map[string]string{"WEBHOOK_SECRETS": strings.TrimPrefix(aSecret, secretPrefix)}, "WEBHOOK_SECRETS: secret 1"},
		"no base64":       {map[string]string{"WEBHOOK_SECRETS": aSecret + " whsec_canary!"}, "WEBHOOK_SECRETS: secret 2"},
		"too short":       {map[string]string{"WEBHOOK_SECRETS": "whsec_Y2FuYXJ5"}, "24 to 64"},
		"no object":       {map[string]string{"WEBHOOK_TENANT_SECRETS": "canary"}, "WEBHOOK_TENANT_SECRETS is not"},
		"a tenant's":      {map[string]string{"WEBHOOK_TENANT_SECRETS": `{"acme": "canary"}`}, `tenant "acme": secret 1`},
		"a tenant's none": {map[string]string{"WEBHOOK_TENANT_SECRETS": `{"acme": ""}`}, `tenant "acme" has no secret`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := delivering(t, c.env).deliver(t.Context(), delivery(url))
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "canary")
			require.Equal(t, plugin.Verdict{Code: "not_configured"}, plugin.VerdictOf(err), "it is retried: settings can be corrected")
			require.False(t, called)
		})
	}
}

func TestTheReceiverDecides(t *testing.T) {
	after := func(d time.Duration) *time.Duration { return &d }
	for name, c := range map[string]struct {
		status     int
		retryAfter string
		want       *plugin.Verdict
	}{
		"thanks":                 {status: 204},
		"accepted":               {status: 202, retryAfter: "5"},
		"moved":                  {status: 301, want: &plugin.Verdict{Permanent: true, Code: "http_301"}},
		"not yet there":          {status: 404, want: &plugin.Verdict{Code: "http_404"}},
		"not its secret":         {status: 401, want: &plugin.Verdict{Code: "http_401"}},
		"gone":                   {status: 410, retryAfter: "5", want: &plugin.Verdict{Permanent: true, Code: "http_410"}},
		"too many":               {status: 429, retryAfter: "60", want: &plugin.Verdict{Code: "http_429", RetryAfter: after(time.Minute)}},
		"broken":                 {status: 500, want: &plugin.Verdict{Code: "http_500"}},
		"broken for a while":     {status: 500, retryAfter: "7", want: &plugin.Verdict{Code: "http_500", RetryAfter: after(7 * time.Second)}},
		"broken, in other words": {status: 503, retryAfter: "soon", want: &plugin.Verdict{Code: "http_503"}},
	} {
		t.Run(name, func(t *testing.T) {
			url := serving(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.WriteHeader(c.status)
			})
			got, err := delivering(t, nil).deliver(t.Context(), delivery(url+"/way?key=SECRET"))
			require.Equal(t, c.status, got.Status)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.Equal(t, *c.want, plugin.VerdictOf(err))
			require.NotContains(t, err.Error(), "SECRET")
			require.NotContains(t, err.Error(), "/way")
		})
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	var reached atomic.Bool
	inside := serving(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	url := serving(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside, http.StatusTemporaryRedirect)
	})
	_, err := delivering(t, nil).deliver(t.Context(), delivery(url))
	require.ErrorContains(t, err, "redirects are not followed")
	require.Equal(t, plugin.Verdict{Permanent: true, Code: "http_307"}, plugin.VerdictOf(err))
	require.False(t, reached.Load())
}

func TestAReceiverInsideIsRefused(t *testing.T) {
	called := false
	url := serving(t, func(http.ResponseWriter, *http.Request) { called = true })
	for _, target := range []string{url, strings.Replace(url, "127.0.0.1", "localhost", 1), strings.Replace(url, "127.0.0.1", "[::ffff:7f00:1]", 1)} {
		_, err := delivering(t, map[string]string{"WEBHOOK_ALLOW_PRIVATE": ""}).deliver(t.Context(), delivery(target))
		require.Error(t, err, target)
		require.False(t, called)
	}
	_, err := delivering(t, map[string]string{"WEBHOOK_ALLOW_PRIVATE": ""}).deliver(t.Context(), delivery(url+"/way"))
	require.Equal(t, plugin.Verdict{Permanent: true, Code: "private_address"}, plugin.VerdictOf(err))
	require.ErrorContains(t, err, "WEBHOOK_ALLOW_PRIVATE=true allows it")
	require.NotContains(t, err.Error(), "/way")
	for _, odd := range []string{"", "file:///etc/passwd", "http://u:SECRET@example.com/", "/way"} {
		_, err := delivering(t, nil).deliver(t.Context(), delivery(odd))
		require.Equal(t, plugin.Verdict{Permanent: true, Code: "bad_request"}, plugin.VerdictOf(err), odd)
		require.NotContains(t, err.Error(), "SECRET")
	}
}

func TestAReceiverThatHangsIsGivenUp(t *testing.T) {
	url := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := delivering(t, nil).deliver(ctx, delivery(url))
	require.Equal(t, plugin.Verdict{Code: "no_response"}, plugin.VerdictOf(err))
}

func TestTheBodyOfAnAnswerHoldsNobodyUp(t *testing.T) {
	for name, write := range map[string]func(http.ResponseWriter, *http.Request){
		"it drips": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, ".")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		},
		"it has no end": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := serving(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				write(w, r)
			})
			began := time.Now()
			got, err := delivering(t, nil).deliver(t.Context(), delivery(url))
			require.NoError(t, err, "its status says that it has the event")
			require.Equal(t, delivered{Status: 200}, got)
			require.Less(t, time.Since(began), webhookTime/2)
		})
	}
}
