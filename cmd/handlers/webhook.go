package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

const (
	// webhookTime bounds a delivery until the receiver's status.
	webhookTime = 20 * time.Second
	// drainTime and drainBytes bound how much of the receiver's body is read, so that the
	// connection can be used again. The body means nothing.
	drainTime  = time.Second
	drainBytes = 16 << 10
	// webhookConcurrency leaves room for other jobs while receivers hang.
	webhookConcurrency = concurrency / 2
)

// webhookArgs are made by the orchestrator, never by a client: the event is signed.
type webhookArgs struct {
	URL string `json:"url"`
	// Event is sent as it is, byte for byte.
	Event json.RawMessage `json:"event"`
}

type delivered struct {
	Status int `json:"status"`
}

// webhooks tells the receivers of callback URLs that jobs have ended.
type webhooks struct {
	client *http.Client
	keys   signingKeys
	// problem is what is wrong with the settings; nil for nothing.
	problem error
}

// newWebhooks reads its settings: WEBHOOK_SECRETS, WEBHOOK_TENANT_SECRETS, WEBHOOK_UNSIGNED
// and WEBHOOK_ALLOW_PRIVATE.
func newWebhooks(getenv func(string) string) webhooks {
	keys, err := readSigningKeys(getenv)
	client := newClient(getenv("WEBHOOK_ALLOW_PRIVATE") == "true", "WEBHOOK_ALLOW_PRIVATE")
	// Whoever controls a receiver must not choose where its deliveries go.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return webhooks{client: client, keys: keys, problem: err}
}

func (w webhooks) handler() plugin.Handler {
	return plugin.HandleResult("WEBHOOK", w.deliver,
		plugin.Description("Tells a callback URL that a job has ended. Made by Holdfast only."),
		plugin.Concurrency(webhookConcurrency),
		plugin.Timeout(webhookTime+10*time.Second), plugin.MaxAttempts(10),
		plugin.Retry(plugin.ExponentialBackoff(10*time.Second, 3, time.Hour)))
}

// deliver makes one attempt at a delivery, as Standard Webhooks describes it.
func (w webhooks) deliver(ctx context.Context, j plugin.Job[webhookArgs]) (delivered, error) {
	if w.problem != nil {
		return delivered{}, plugin.Code(w.problem, "not_configured")
	}
	ctx, cancel := context.WithTimeout(ctx, webhookTime)
	defer cancel()
	request, err := w.newRequest(ctx, j, time.Now())
	if err != nil {
		return delivered{}, err
	}
	span := beginRequest(request)
	answer, err := w.client.Do(request)
	if err != nil {
		span.fail("no_response")
		return delivered{}, steerTransport(fmt.Errorf("POST %s: %w", request.URL.Host, withoutURL(err)))
	}
	defer answer.Body.Close()
	span.answered(answer.StatusCode)
	drain := time.AfterFunc(drainTime, cancel)
	_, _ = io.CopyN(io.Discard, answer.Body, drainBytes)
	drain.Stop()
	return delivered{Status: answer.StatusCode}, judgeReceiver(answer, time.Now())
}

func (w webhooks) newRequest(ctx context.Context, j plugin.Job[webhookArgs], now time.Time) (*http.Request, error) {
	target, err := url.Parse(j.Args.URL)
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Hostname() == "" || target.User != nil {
		return nil, plugin.Code(plugin.Permanent(errors.New("url is not an absolute http or https URL without a user")), "bad_request")
	}
	keys, err := w.keys.of(j.Tenant)
	if err != nil {
		return nil, plugin.Code(err, "not_configured")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(j.Args.Event))
	if err != nil {
		return nil, plugin.Code(plugin.Permanent(withoutURL(err)), "bad_request")
	}
	timestamp := strconv.FormatInt(now.Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "holdfast")
	request.Header.Set("Webhook-Id", j.ID)
	request.Header.Set("Webhook-Timestamp", timestamp)
	if len(keys) > 0 {
		request.Header.Set("Webhook-Signature", keys.sign(j.ID, timestamp, j.Args.Event))
	}
	return request, nil
}

// judgeReceiver decides what the receiver's status means for the delivery. Receivers are
// under development, restarted and misconfigured, so that most answers may change. 410 asks
// for no more, and a redirect is not followed.
func judgeReceiver(answer *http.Response, now time.Time) error {
	status := answer.StatusCode
	if status/100 == 2 {
		return nil
	}
	said := fmt.Sprintf("the receiver answered %d %s", status, http.StatusText(status))
	if status/100 == 3 {
		said += "; redirects are not followed"
	}
	err := plugin.Code(errors.New(said), fmt.Sprintf("http_%d", status))
	if status == http.StatusGone || status/100 == 3 {
		return plugin.Permanent(err)
	}
	return waitAsTold(err, answer.Header.Get("Retry-After"), now)
}
