package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPluginsGetTheCollectorIfConfigured(t *testing.T) {
	cases := map[string]struct {
		config  Tracing
		environ []string
		want    map[string]string
	}{
		"not wanted":   {Tracing{Endpoint: "http://jaeger:4317"}, nil, nil},
		"no collector": {Tracing{Plugins: true}, nil, nil},
		"configured": {Tracing{Plugins: true, Endpoint: "http://jaeger:4317", Headers: "authorization=s3cret"}, nil, map[string]string{
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://jaeger:4317", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
		}},
		"configured, by HTTP": {
			Tracing{Plugins: true, Endpoint: "http://jaeger:4318", Protocol: "http"},
			[]string{"OTEL_RESOURCE_ATTRIBUTES=deployment.environment=shop", "OTEL_EXPORTER_OTLP_ENDPOINT=http://other:1"},
			map[string]string{
				"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://jaeger:4318/v1/traces", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
				"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=shop",
			},
		},
		"from the environment": {
			Tracing{Plugins: true},
			[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://jaeger:4318/base/", "OTEL_EXPORTER_OTLP_HEADERS=authorization=s3cret", "OTEL_EXPORTER_OTLP_CERTIFICATE=/ca.pem"},
			map[string]string{
				"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://jaeger:4318/base/v1/traces", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
				"OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca.pem",
			},
		},
		"from the environment, by gRPC": {
			Tracing{Plugins: true},
			[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://jaeger:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
			map[string]string{
				"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://jaeger:4317", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
			},
		},
		"with a password": {Tracing{Plugins: true, Endpoint: "http://user:s3cret@jaeger:4317"}, nil, nil},
		"with a token": {
			Tracing{Plugins: true},
			[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://jaeger:4318/v1/traces?token=s3cret"},
			nil,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			given := c.config.PluginVariables("shop", c.environ)
			if c.want != nil {
				c.want["OTEL_SERVICE_NAME"] = "shop"
			}
			require.Equal(t, c.want, given)
		})
	}
}

func TestAPluginsOwnEnvironmentOverridesTheCommonOne(t *testing.T) {
	h := Plugin{Name: "shop", Path: "x", Env: map[string]string{"OTEL_SERVICE_NAME": "mine"}}
	c := Tracing{Plugins: true, Endpoint: "http://jaeger:4317"}
	environment, err := h.Environment(nil, c.PluginVariables("shop", nil))
	require.NoError(t, err)
	require.Equal(t, []string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://jaeger:4317", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc", "OTEL_SERVICE_NAME=mine",
	}, environment)
}
