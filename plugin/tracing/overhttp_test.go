package tracing_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/plugintest"
	"github.com/holdfast-jobs/holdfast/plugin/tracing"
)

func TestARedirectIsNotFollowedButTold(t *testing.T) {
	var followed atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // which would outlive the handler
		followed.Add(1)
	}))
	defer elsewhere.Close()
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			http.Redirect(w, r, elsewhere.URL+"/login", status)
		}))
		defer front.Close()
		out := told(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+front.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-api-key=s3cret")
		require.Contains(t, out, http.StatusText(status))
		require.NotContains(t, out, "s3cret")
	}
	require.Zero(t, followed.Load())
}

// The variables of traces win over those of everything, as the library has it.
func TestCertificatesAreThoseOfTheEnvironment(t *testing.T) {
	var sent atomic.Int32
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v1/traces" && r.ProtoMajor == 2 {
			sent.Add(1)
		}
	}))
	secure.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	private, err := x509.MarshalPKCS8PrivateKey(secure.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	certificate, key := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for file, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}, key: {Type: "PRIVATE KEY", Bytes: private},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	for n, prefix := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"} {
		t.Run(prefix, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", secure.URL)
			for _, which := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
				t.Setenv("OTEL_EXPORTER_OTLP_"+which, "/nowhere.pem")
			}
			t.Setenv(prefix+"CERTIFICATE", certificate)
			t.Setenv(prefix+"CLIENT_CERTIFICATE", certificate)
			t.Setenv(prefix+"CLIENT_KEY", key)
			h := plugintest.Start(t, tracing.Setup(), plugin.HandleResult("LOOK", look))
			h.Run(t.Context(), job())
			drain(t, h)
			require.EqualValues(t, n+1, sent.Load())
		})
	}
}

func TestVariablesThatCannotBeUsedAreTold(t *testing.T) {
	for variable, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere.pem":            "OTEL_EXPORTER_OTLP_CERTIFICATE: open /nowhere.pem: no such file",
		"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE=overhttp_test.go": "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: overhttp_test.go contains no certificate in PEM",
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=overhttp_test.go": "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _KEY: open /nowhere.pem",
		"OTEL_EXPORTER_OTLP_TIMEOUT=10s":                         "OTEL_EXPORTER_OTLP_TIMEOUT is not a number of milliseconds such as 10000",
	} {
		out := told(t, "OTEL_EXPORTER_OTLP_ENDPOINT=https://127.0.0.1:1", "OTEL_EXPORTER_OTLP_CLIENT_KEY=/nowhere.pem", variable)
		require.Contains(t, out, want)
	}
}
