package config

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEffectiveSettingsShowNoSecret sets everything that may contain one.
func TestEffectiveSettingsShowNoSecret(t *testing.T) {
	const secret = "canary"
	url, processes := "https://example.com/"+secret, 3
	cfg := Defaults()
	cfg.Database.URL = "postgres://me:" + secret + "@db/jobs?sslpassword=" + secret
	cfg.Security.Password = secret
	cfg.Security.Tokens = []Token{{Name: "shop", Token: secret, SHA256: secret, Scopes: []string{"read"}}}
	cfg.Tracing.Headers, cfg.Tracing.Endpoint, cfg.Tracing.TraceURL = secret, "https://u:"+secret+"@otel", "https://u:"+secret+"@jaeger/{trace_id}"
	cfg.Jobs.Default.CallbackURL = &url
	cfg.Jobs.Types = map[string]Type{"A": {CallbackURL: &url}}
	cfg.Plugins = []Plugin{{Name: "shop", Args: []string{"--key=" + secret}, Env: map[string]string{"KEY": secret}, Processes: &processes}}
	cfg.Schedules = Schedules{"nightly": {Cron: "@daily", Job: map[string]any{"payload": secret}}}

	shown := cfg.Effective()
	text, err := json.Marshal(shown)
	require.NoError(t, err)
	require.NotContains(t, string(text), secret)
	values := map[string]string{}
	for _, setting := range shown {
		require.NotContains(t, values, setting.Key)
		values[setting.Key] = setting.Value
	}
	for key, want := range map[string]string{
		"database.url": "postgres://me:xxxxx@db/jobs?sslpassword=xxxxx", "security.password": "xxxxx", "security.user": "admin",
		"security.tokens.0.name": "shop", "security.tokens.0.token": "xxxxx", "security.tokens.0.token_sha256": "withheld",
		"security.tokens.0.scopes": "[read]", "plugins.0.args": "withheld", "plugins.0.env": "withheld", "plugins.0.processes": "3",
		"schedules.nightly.cron": "@daily", "schedules.nightly.job": "withheld", "jobs.types.A.callback_url": "withheld",
		"worker.lease": (30 * time.Second).String(), "ui.enabled": "true", "retention.dead": "keep", "tracing.headers": "xxxxx",
		"tracing.endpoint": "withheld", "tracing.trace_url_template": "withheld", "server.trusted_proxies": "[]",
	} {
		require.Equal(t, want, values[key], key)
	}
}

// A new setting of a kind that can hold anything must say whether it is shown.
func TestSettingsThatCanHoldAnythingAreWithheld(t *testing.T) {
	var walk func(reflect.Type, string)
	walk = func(in reflect.Type, at string) {
		for in.Kind() == reflect.Pointer || in.Kind() == reflect.Slice || in.Kind() == reflect.Map {
			in = in.Elem()
		}
		if in.Kind() != reflect.Struct {
			return
		}
		for i := range in.NumField() {
			field := in.Field(i)
			name := field.Tag.Get("koanf")
			if name == "" || field.Tag.Get("show") == "no" {
				continue
			}
			require.NotEqual(t, reflect.TypeFor[map[string]any](), field.Type, at+name)
			require.NotEqual(t, reflect.TypeFor[map[string]string](), field.Type, at+name)
			walk(field.Type, at+name+".")
		}
	}
	walk(reflect.TypeFor[Config](), "")
}
