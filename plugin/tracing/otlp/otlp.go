// Package otlp has what package tracing and the orchestrator need beside OpenTelemetry's
// exporters: it reads the variables that the exporters would ignore without a word if they
// are wrong, follows no redirects, and blanks secrets. It is no API for plugins.
package otlp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"iter"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// SendWithin is how long a request to a collector may take by default. It is
	// OpenTelemetry's default.
	SendWithin = 10 * time.Second
	// ComplainEvery is the least time between two log lines about lost spans.
	ComplainEvery = time.Minute

	// maxAnswer bounds a collector's text in a log line, in bytes.
	maxAnswer = 1 << 10
	// minSecret is the length of the shortest word of a header that is blanked, in bytes.
	minSecret = 4
)

// Environment looks up a variable, as os.Getenv does.
type Environment func(name string) string

// NamesCollector reports whether the variables ask for traces and name a collector.
func (e Environment) NamesCollector() bool {
	if strings.EqualFold(e("OTEL_SDK_DISABLED"), "true") || e("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	name, _ := e.Setting("ENDPOINT")
	return name != ""
}

// Setting returns a setting such as ENDPOINT and the name of the variable that sets it:
// the one for traces or, if that is empty, the one for everything.
func (e Environment) Setting(setting string) (name, value string) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + setting, "OTEL_EXPORTER_OTLP_" + setting} {
		if value := strings.TrimSpace(e(name)); value != "" {
			return name, value
		}
	}
	return "", ""
}

// Timeout is how long a request may take; 0 for no bound.
func (e Environment) Timeout() (time.Duration, error) {
	name, text := e.Setting("TIMEOUT")
	if text == "" {
		return SendWithin, nil
	}
	ms, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%s is not a number of milliseconds such as 10000", name)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// Certificates reads those that the variables name; nil for none, which means the
// system's.
func (e Environment) Certificates() (*tls.Config, error) {
	var config tls.Config
	if name, file := e.Setting("CERTIFICATE"); file != "" {
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
		certificate, key := strings.TrimSpace(e(prefix+"CERTIFICATE")), strings.TrimSpace(e(prefix+"KEY"))
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

// Transport is like the exporter's, which does not apply certificates and timeouts to a
// client that it is given.
func Transport(trusted *tls.Config, connectWithin time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		DialContext:       (&net.Dialer{Timeout: connectWithin}).DialContext,
		ForceAttemptHTTP2: true, TLSClientConfig: trusted, TLSHandshakeTimeout: connectWithin, IdleConnTimeout: 90 * time.Second,
	}
}

// Client follows no redirects, as the exporter's own would. A redirect refuses the batch
// like other errors: the request would arrive elsewhere as a GET without the spans, which
// counts as sent, and the headers, which may be secret, are not for others.
func Client(transport http.RoundTripper, timeout time.Duration) *http.Client {
	return &http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Secrets are the words of headers, which a collector may repeat in its answers. The
// longest come first: blanking a short one inside a long one would leave the rest.
type Secrets []string

// SecretsOf returns the words of the values of headers.
func SecretsOf(values iter.Seq[string]) Secrets {
	var s Secrets
	for value := range values {
		for word := range strings.FieldsSeq(value) { // Bearer, and the token
			if len(word) >= minSecret {
				s = append(s, word)
			}
		}
	}
	slices.SortFunc(s, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return s
}

// Fit returns a collector's text as it may be logged: blanked and cut.
func (s Secrets) Fit(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, "xxxxx")
	}
	if len(text) > maxAnswer {
		text = strings.ToValidUTF8(text[:maxAnswer], "") + " ..."
	}
	return text
}
