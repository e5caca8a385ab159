package tracing

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// connectWithin bounds the making of a connection.
	connectWithin = 5 * time.Second
	// sendWithin bounds a try to send.
	sendWithin = 10 * time.Second
	// firstPause and maxPause bound the time between two tries, which grows.
	firstPause = 500 * time.Millisecond
	maxPause   = 5 * time.Second
)

// reconnect makes gRPC connect again soon. Its default pauses grow to two minutes, in
// which it would not notice a collector that is back.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
	MinConnectTimeout: connectWithin,
}

// exporter does not wait for the collector. The scheme of the endpoint alone decides
// about TLS: the library would let OTEL_EXPORTER_OTLP_INSECURE and _CERTIFICATE win.
// Other variables, such as for timeouts, count wherever the endpoint is from.
func (t Target) exporter(ctx context.Context) (sdk.SpanExporter, error) {
	endpoint := t.TracesEndpoint()
	timeout, err := requestWithin(t.variable)
	if err != nil {
		return nil, err
	}
	var trusted *tls.Config
	if !plain(endpoint) {
		if trusted, err = certificates(t.variable); err != nil {
			return nil, err
		}
	}
	if t.Protocol == GRPC {
		return otlptrace.New(ctx, t.grpcClient(endpoint, trusted, timeout))
	}
	transport := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		DialContext:       (&net.Dialer{Timeout: connectWithin}).DialContext,
		ForceAttemptHTTP2: true, TLSClientConfig: trusted, TLSHandshakeTimeout: connectWithin, IdleConnTimeout: 90 * time.Second,
	}
	exporter, err := otlptrace.New(ctx, t.httpClient(endpoint, transport, timeout))
	return httpExporter{exporter, transport}, err
}

func (t Target) httpClient(endpoint string, transport http.RoundTripper, timeout time.Duration) otlptrace.Client {
	options := []otlptracehttp.Option{
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: firstPause, MaxInterval: maxPause, MaxElapsedTime: keepFor,
		}),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: overHTTP{transport}, Timeout: timeout, CheckRedirect: stay}),
		otlptracehttp.WithEndpointURL(endpoint),
		otlptracehttp.WithTLSClientConfig(nil), // which is the transport's
	}
	if len(t.Headers) > 0 {
		options = append(options, otlptracehttp.WithHeaders(t.Headers))
	}
	return otlptracehttp.NewClient(options...)
}

func (t Target) grpcClient(endpoint string, trusted *tls.Config, timeout time.Duration, dial ...grpc.DialOption) otlptrace.Client {
	options := []otlptracegrpc.Option{
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{
			Enabled: true, InitialInterval: firstPause, MaxInterval: maxPause, MaxElapsedTime: keepFor,
		}),
		otlptracegrpc.WithTimeout(keepFor), // of all tries
		otlptracegrpc.WithDialOption(append(dial, grpc.WithConnectParams(reconnect), grpc.WithUnaryInterceptor(overGRPC(timeout)))...),
	}
	switch {
	case strings.HasPrefix(endpoint, "unix:"): // which the library reads by itself
	case plain(endpoint):
		options = append(options, otlptracegrpc.WithEndpointURL(endpoint), otlptracegrpc.WithTLSCredentials(insecure.NewCredentials()))
	default:
		options = append(options, otlptracegrpc.WithEndpointURL(endpoint), otlptracegrpc.WithTLSCredentials(credentials.NewTLS(trusted)))
	}
	if len(t.Headers) > 0 {
		options = append(options, otlptracegrpc.WithHeaders(t.Headers))
	}
	return otlptracegrpc.NewClient(options...)
}

// stay follows no redirect. A redirect refuses the batch like other errors: the request
// would arrive elsewhere as a GET without the spans, and the headers are not for others.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// requestWithin is how long a try may take: sendWithin, or less by OpenTelemetry's
// variables, which are in milliseconds.
func requestWithin(getenv func(string) string) (time.Duration, error) {
	name, text := firstOf(getenv, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
	if text == "" {
		return sendWithin, nil
	}
	ms, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is no number of milliseconds", name, text)
	}
	if ms == 0 { // for no bound
		return sendWithin, nil
	}
	return min(time.Duration(ms)*time.Millisecond, sendWithin), nil
}

// httpExporter closes its connections when it ends.
type httpExporter struct {
	sdk.SpanExporter
	transport *http.Transport
}

// Shutdown implements the SDK's SpanExporter.
func (e httpExporter) Shutdown(ctx context.Context) error {
	defer e.transport.CloseIdleConnections()
	return e.SpanExporter.Shutdown(ctx)
}
