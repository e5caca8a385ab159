package tracing

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// firstOf is the first variable that is not empty, with its value.
func firstOf(names ...string) (name, value string) {
	for _, name := range names {
		if value := strings.TrimSpace(os.Getenv(name)); value != "" {
			return name, value
		}
	}
	return "", ""
}

func endpoint() (name, value string) {
	return firstOf("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
}

func headers() (name, value string) {
	return firstOf("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
}

// checkVariables refuses what the library would ignore silently. Its errors name the
// variable and do not show its value, which may be secret.
func checkVariables() error {
	name, value := endpoint()
	at, err := url.Parse(value)
	if err != nil || at.Scheme != "unix" && (at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https") {
		return fmt.Errorf("%s is not a URL such as http://localhost:4318", name)
	}
	name, value = headers()
	for pair := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		header, escaped, found := strings.Cut(pair, "=")
		header = strings.TrimSpace(header)
		if _, err := url.PathUnescape(escaped); !found || err != nil || header == "" || strings.ContainsAny(header, " \t:") {
			return fmt.Errorf("%s: write name=value, separated by commas, and %%25 for a %%", name)
		}
	}
	return nil
}

// headerValues are the values of headers, which may be credentials. The longest comes
// first, because a short one may be part of it.
func headerValues() []string {
	var values []string
	_, all := headers()
	for pair := range strings.SplitSeq(all, ",") {
		_, escaped, _ := strings.Cut(pair, "=")
		value, err := url.PathUnescape(escaped)
		if err != nil {
			value = escaped
		}
		values = append(values, strings.Fields(value)...) // Bearer, and the token
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return values
}
