package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// reserved are headers that the protocols set: a value from the settings would not be
// sent, or would break the request.
var reserved = []string{"connection", "content-encoding", "content-length", "content-type", "host", "te", "trailer", "transfer-encoding", "upgrade"}

// parseHeaders reads name=value pairs, separated by commas. Its errors show no value, nor
// anything that may be a value in the wrong place.
func parseHeaders(text, protocol string) (map[string]string, error) {
	headers, taken := make(map[string]string), make(map[string]bool)
	for i, pair := range strings.Split(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !found || name == "" {
			return nil, errors.New("write name=value, separated by commas")
		}
		if !nameFits(name, protocol) {
			return nil, fmt.Errorf("the name of header %d has a character that is not allowed in a name; write name=value, separated by commas", i+1)
		}
		switch lower := strings.ToLower(name); {
		case taken[lower]:
			return nil, fmt.Errorf("the header %s is duplicated; names that differ only in case are the same", lower)
		case slices.Contains(reserved, lower), lower == "user-agent" && protocol == GRPC:
			return nil, fmt.Errorf("the header %s is set by the protocol; leave it out", lower)
		default:
			taken[lower] = true
		}
		headers[name] = value
	}
	return headers, nil
}

// unescape decodes values as in OpenTelemetry's variables: %20 is a blank.
func unescape(headers map[string]string) error {
	for name, escaped := range headers {
		value, err := url.PathUnescape(escaped)
		if err != nil {
			return fmt.Errorf("the value of %s has a %% that begins no escape such as %%20; write %%25 for it", name)
		}
		headers[name] = strings.TrimSpace(value)
	}
	return nil
}

func checkValues(headers map[string]string, protocol string) error {
	for name, value := range headers {
		if !valueFits(value, protocol) {
			return fmt.Errorf("the value of %s has a character that is not allowed in a value, such as a line break", name)
		}
	}
	return nil
}

func nameFits(name, protocol string) bool {
	if protocol != GRPC {
		return httpguts.ValidHeaderFieldName(name)
	}
	return strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" &&
		!strings.HasPrefix(strings.ToLower(name), "grpc-") // which are gRPC's own
}

func valueFits(value, protocol string) bool {
	if protocol != GRPC {
		return httpguts.ValidHeaderFieldValue(value)
	}
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}
