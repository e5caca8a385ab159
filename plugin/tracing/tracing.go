package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/tracing/otlp"
)

// gatherFor is how long spans are collected before they are sent, unless
// OTEL_BSP_SCHEDULE_DELAY is set. A process that is killed loses them.
const gatherFor = 500 * time.Millisecond

var environment otlp.Environment = os.Getenv

// Setup sets OpenTelemetry's global tracer provider and propagator as the environment
// says: OTEL_EXPORTER_OTLP_ENDPOINT, _PROTOCOL
// (http/protobuf, the default, or grpc), _HEADERS, _CERTIFICATE, _CLIENT_CERTIFICATE,
// _CLIENT_KEY, _TIMEOUT, _COMPRESSION, the same with TRACES_ after OTLP_,
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_*, OTEL_TRACES_SAMPLER.
// Without an endpoint it sets only the propagator, with which requests carry the
// attempt's context. Redirects are not followed.
//
// Pass the result to plugin.Serve: it sends the last spans when the process exits.
// Setup does not fail. If settings are invalid, it says so on standard error and traces
// nothing.
func Setup() plugin.Part {
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	if !environment.NamesCollector() {
		return plugin.OnDrain(func(context.Context) {})
	}
	values, err := headerValues()
	otel.SetErrorHandler(&complaints{to: os.Stderr, secrets: otlp.SecretsOf(slices.Values(values))})
	otel.SetLogger(logr.Discard()) // it quotes variables with secrets
	var provider *sdk.TracerProvider
	if err == nil {
		provider, err = newProvider(context.Background())
	}
	if err != nil {
		otel.Handle(err)
		return plugin.OnDrain(func(context.Context) {})
	}
	otel.SetTracerProvider(provider)
	return plugin.OnDrain(func(ctx context.Context) {
		if err := provider.Shutdown(ctx); err != nil {
			otel.Handle(fmt.Errorf("the last spans may not have been sent: %w", err))
		}
	})
}

func newProvider(ctx context.Context) (*sdk.TracerProvider, error) {
	client, err := newClient()
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithProcessPID(),
		resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", filepath.Base(os.Args[0]))),
		resource.WithFromEnv(), // the user wins
	)
	if errors.Is(err, resource.ErrPartialResource) { // what is invalid is left out
		otel.Handle(fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err))
	} else if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, client) // it does not wait for the collector
	if err != nil {
		return nil, err
	}
	var options []sdk.BatchSpanProcessorOption
	if os.Getenv("OTEL_BSP_SCHEDULE_DELAY") == "" {
		options = append(options, sdk.WithBatchTimeout(gatherFor))
	}
	return sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithBatcher(exporter, options...)), nil
}

// headerValues are the values of headers, which may be credentials. It refuses what the
// library would ignore silently.
func headerValues() (values []string, err error) {
	name, headers := environment.Setting("HEADERS")
	for pair := range strings.SplitSeq(headers, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		header, escaped, found := strings.Cut(pair, "=")
		header = strings.TrimSpace(header)
		value, err := url.PathUnescape(escaped)
		if !found || err != nil || header == "" || strings.ContainsAny(header, " \t:") {
			return nil, fmt.Errorf("%s: write name=value, separated by commas, and %%25 for a %%", name)
		}
		values = append(values, value)
	}
	return values, nil
}

// newClient lets the library read the variables, with these exceptions. The protocol
// selects one of the library's packages. Only the endpoint's scheme decides about TLS;
// in the library OTEL_EXPORTER_OTLP_INSECURE wins, and over gRPC _CERTIFICATE. overHTTP
// reads the rest for HTTP. Errors do not show values, which may be secret.
func newClient() (otlptrace.Client, error) {
	name, value := environment.Setting("ENDPOINT")
	at, err := url.Parse(value)
	if err != nil || at.Scheme != "unix" && (at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https") {
		return nil, fmt.Errorf("%s is not a URL such as http://localhost:4318", name)
	}
	switch _, protocol := environment.Setting("PROTOCOL"); protocol {
	case "grpc":
		switch at.Scheme {
		case "http":
			return otlptracegrpc.NewClient(
				otlptracegrpc.WithEndpointURL(at.String()), otlptracegrpc.WithTLSCredentials(insecure.NewCredentials())), nil
		case "https":
			return otlptracegrpc.NewClient(otlptracegrpc.WithEndpointURL(at.String())), nil
		}
		return otlptracegrpc.NewClient(), nil // a unix socket
	case "", "http/protobuf":
		if name == "OTEL_EXPORTER_OTLP_ENDPOINT" { // without the path for traces
			at = at.JoinPath("v1/traces")
		}
		client, err := overHTTP(at.Scheme)
		if err != nil {
			return nil, err
		}
		return otlptracehttp.NewClient(
			otlptracehttp.WithEndpointURL(at.String()), otlptracehttp.WithHTTPClient(client), otlptracehttp.WithTLSClientConfig(nil)), nil
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; spans are sent by grpc or http/protobuf", protocol)
	}
}
