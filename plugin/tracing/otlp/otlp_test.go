package otlp_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/tracing/otlp"
)

func TestASecretThatHoldsAnotherIsBlankedWhole(t *testing.T) {
	for range 50 { // for headers have no order
		known := otlp.SecretsOf(maps.Values(map[string]string{"x-tenant": "acme", "x-zone": "eu-acme", "x-api-key": "acme-3f9as3cret"}))
		require.Equal(t, "unknown key xxxxx, of xxxxx", known.Fit("unknown key acme-3f9as3cret, of acme"))
		require.Equal(t, "no eu-xxxxx", known.Fit("no eu-acme-3f9as3cret"))
	}
}
