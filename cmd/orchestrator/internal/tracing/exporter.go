package tracing

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-jobs/holdfast/plugin/tracing/otlp"
)

const (
	// connectWithin bounds the making of a connection.
	connectWithin = 5 * time.Second
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

// client does not wait for the collector. The scheme of the endpoint alone decides
// about TLS: the library would let OTEL_EXPORTER_OTLP_INSECURE and _CERTIFICATE win.
// Other variables, such as for timeouts, count wherever the endpoint is from.
func (t Target) client() (otlptrace.Client, error) {
	endpoint := t.TracesEndpoint()
	timeout, err := t.environment().Timeout()
	if err != nil {
		return nil, err
	}
	if timeout == 0 || timeout > otlp.SendWithin { // other batches wait behind this one
		timeout = otlp.SendWithin
	}
	var trusted *tls.Config
	if !plain(endpoint) {
		if trusted, err = t.environment().Certificates(); err != nil {
			return nil, err
		}
	}
	if t.Protocol == GRPC {
		return t.grpcClient(endpoint, trusted, timeout), nil
	}
	transport := otlp.Transport(trusted, connectWithin)
	return httpClient{t.httpClient(endpoint, transport, timeout), transport}, nil
}

func (t Target) httpClient(endpoint string, transport http.RoundTripper, timeout time.Duration) otlptrace.Client {
	options := []otlptracehttp.Option{
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: firstPause, MaxInterval: maxPause, MaxElapsedTime: keepFor,
		}),
		otlptracehttp.WithHTTPClient(otlp.Client(overHTTP{transport}, timeout)),
		otlptracehttp.WithEndpointURL(endpoint),
		otlptracehttp.WithTLSClientConfig(nil), // which is the transport's
		// Whatever the environment says: JSON would lose the spans that are encoded already.
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
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

// httpClient closes its connections when it ends.
type httpClient struct {
	otlptrace.Client
	transport *http.Transport
}

// Stop implements otlptrace.Client.
func (c httpClient) Stop(ctx context.Context) error {
	defer c.transport.CloseIdleConnections()
	return c.Client.Stop(ctx)
}
