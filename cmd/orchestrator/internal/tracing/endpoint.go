package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// examples are valid endpoints.
var examples = map[string]string{GRPC: "http://localhost:4317", HTTP: "http://localhost:4318"}

// checkEndpoint refuses text that is not a URL, and URLs with parts that would be ignored.
func checkEndpoint(endpoint, protocol string) error {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Hostname() == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return fmt.Errorf("%q is not a URL such as %s", withoutSecrets(endpoint), examples[protocol])
	}
	if strings.Contains(endpoint, "@") { // with a / or ? in the password, the rest of it looks like a port and a path
		return errors.New("a user and a password are not sent; send the header authorization=Basic and what follows instead (write %40 for an @ in a path)")
	}
	if port := parsed.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("the port %s is not from 1 to 65535", port)
		}
	}
	switch root := parsed.Scheme + "://" + parsed.Host; {
	case parsed.RawQuery != "" || parsed.ForceQuery:
		return errors.New("a query is not sent; send a header instead")
	case parsed.Fragment != "":
		return errors.New("a fragment, which begins with #, is not sent; leave it out")
	case protocol == GRPC && parsed.Path != "" && parsed.Path != "/":
		return fmt.Errorf("gRPC has no path; write %s, or use the protocol http", root)
	case protocol == GRPC && parsed.Scheme == "http" && parsed.Port() == "":
		return fmt.Errorf("a port is missing; write %s:4317", strings.TrimSuffix(root, ":"))
	}
	return nil
}

// withoutSecrets returns the endpoint, which may not be a URL, without what may be secret.
func withoutSecrets(endpoint string) string {
	at := strings.LastIndex(endpoint, "@")
	end := strings.IndexAny(endpoint, "?#")
	switch {
	case at >= 0 && end >= 0 && end < at: // a password or a query: which, is not clear
		return "xxxxx"
	case end >= 0:
		endpoint = endpoint[:end]
	}
	if at >= 0 {
		return "xxxxx" + endpoint[at:]
	}
	return endpoint
}

// plain reports whether the endpoint's scheme means no TLS.
func plain(endpoint string) bool {
	parsed, err := url.Parse(endpoint)
	return err == nil && parsed.Scheme == "http"
}

// withPath adds the usual path to an endpoint that has none.
func withPath(endpoint string) string {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Path != "" && parsed.Path != "/" {
		return endpoint
	}
	parsed.Path = "/v1/traces"
	return parsed.String()
}
