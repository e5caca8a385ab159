package tracing

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/tracing/otlp"
)

// connectWithin is the library's bound for making a connection.
const connectWithin = 30 * time.Second

// overHTTP is a client with the timeout and the certificates of the environment. The
// library does not apply them to a client that it is given.
func overHTTP(scheme string) (*http.Client, error) {
	within, err := environment.Timeout()
	if err != nil {
		return nil, err
	}
	var trusted *tls.Config
	if scheme == "https" {
		if trusted, err = environment.Certificates(); err != nil {
			return nil, err
		}
	}
	return otlp.Client(otlp.Transport(trusted, connectWithin), within), nil
}
