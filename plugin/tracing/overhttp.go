package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// sendWithin bounds a request to a collector unless OTEL_EXPORTER_OTLP_TIMEOUT is set.
// It is OpenTelemetry's default.
const sendWithin = 10 * time.Second

// overHTTP is the same client as the library's, except that it does not follow
// redirects. The library's would follow with a GET without the spans, which counts as
// sent, and with the headers, which may be secret. Here a redirect is a refusal. The
// library does not apply its timeout and certificates to a client that it is given.
func overHTTP(scheme string) (*http.Client, error) {
	within, err := requestWithin()
	if err != nil {
		return nil, err
	}
	var trusted *tls.Config
	if scheme == "https" {
		if trusted, err = certificates(); err != nil {
			return nil, err
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			DialContext:       (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2: true, TLSClientConfig: trusted, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second,
		},
		Timeout:       within,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// requestWithin is how long a request may take.
func requestWithin() (time.Duration, error) {
	name, text := firstOf("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
	if text == "" {
		return sendWithin, nil
	}
	ms, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%s is not a number of milliseconds such as 10000", name)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// certificates are those that the environment names; nil for the system's.
func certificates() (*tls.Config, error) {
	var config tls.Config
	if name, file := firstOf("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s contains no certificate in PEM", name, file)
		}
	}
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_TRACES_CLIENT_", "OTEL_EXPORTER_OTLP_CLIENT_"} {
		_, certificate := firstOf(prefix + "CERTIFICATE")
		_, key := firstOf(prefix + "KEY")
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
