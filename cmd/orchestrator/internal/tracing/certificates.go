package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// certificates reads those that OpenTelemetry's variables name; nil for none, which means
// the system's. The library itself would ignore files that it cannot read. plugin/tracing
// has a copy for plugins, because it imports nothing of Holdfast but the SDK.
func certificates(getenv func(string) string) (*tls.Config, error) {
	var config tls.Config
	if name, file := firstOf(getenv, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s contains no certificate in PEM", name, file)
		}
	}
	for _, signal := range []string{"TRACES_", ""} {
		prefix := "OTEL_EXPORTER_OTLP_" + signal + "CLIENT_"
		certificate, key := getenv(prefix+"CERTIFICATE"), getenv(prefix+"KEY")
		if certificate == "" || key == "" {
			continue
		}
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%sCERTIFICATE and _KEY: %w", prefix, err)
		}
		config.Certificates = []tls.Certificate{pair}
		break
	}
	if config.RootCAs == nil && config.Certificates == nil {
		return nil, nil
	}
	return &config, nil
}
