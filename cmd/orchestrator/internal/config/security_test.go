package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

func TestTokensAreSetByEverySource(t *testing.T) {
	path := writeConfig(t, `
security:
  user: ops
  password: ${PASSWORD}
  tokens:
    - {name: a, token: "a-${SUFFIX}", scopes: [submit]}
    - {name: b, token_sha256: A`+strings.Repeat("0", 63)+`, scopes: [observe, payloads], tenant: acme}
server: {trusted_proxies: [10.0.0.0/8, 192.0.2.7]}
rate_limit: {exempt: []}
`)
	cfg, err := Load(Sources{
		File: path,
		Environ: []string{
			"PASSWORD=p\n", "SUFFIX=x\r\n", "NEW=new", // a line end comes out of a file
			"HOLDFAST_SECURITY__TOKENS__1__TENANT=shop", "HOLDFAST_SECURITY__TOKENS__0__SCOPES=submit,read",
		},
		Sets: []string{"security.tokens.2.name=c", "security.tokens.2.token=${NEW}", "security.tokens.2.scopes=operate"},
	})
	require.NoError(t, err)
	require.Equal(t, "ops", cfg.Security.User)
	require.Equal(t, Secret("p"), cfg.Security.Password)
	require.Equal(t, filepath.Join(filepath.Dir(path), "data/credentials"), cfg.Security.CredentialsFile)
	require.Equal(t, []Token{
		{Name: "a", Token: "a-x", Scopes: []string{"submit", "read"}},
		{Name: "b", SHA256: "a" + strings.Repeat("0", 63), Scopes: []string{"observe", "payloads"}, Tenant: "shop"},
		{Name: "c", Token: "new", Scopes: []string{"operate"}},
	}, cfg.Security.Tokens)
	require.Equal(t, guard.DigestOf("a-x"), cfg.Security.Tokens[0].Digest())
	require.Equal(t, guard.Digest{0: 0xa0}, cfg.Security.Tokens[1].Digest())
	require.Empty(t, cfg.RateLimit.Exempt, "a list in the file replaces the default")
	proxies, err := Networks(cfg.Server.TrustedProxies)
	require.NoError(t, err)
	require.Equal(t, "[10.0.0.0/8 192.0.2.7/32]", fmt.Sprint(proxies))
}

func TestErrorsInSecurityNameTheirKeyAndNoSecret(t *testing.T) {
	token := func(more string) string { return "security: {tokens: [{name: a, scopes: [read], " + more + "}]}" }
	for file, want := range map[string]string{
		"security: {pasword: canary}":                                        "unknown key security.pasword; the nearest known one is security.password",
		"security: {password: 4711}":                                         "security.password",
		"security: {password: [canary]}":                                     "security.password",
		"security: {password: 'canary${NOT_SET}'}":                           "security.password: the variable NOT_SET is not set",
		"security: {password: '${BLANK}'}":                                   "security.password: the variables it names are empty",
		"security: {user: 'a:b'}":                                            "security.user",
		"security: {password: \"canary\\ncanary\"}":                          "security.password: contains a line break",
		"security: {user: ''}":                                               "security.user",
		"security: {password: " + strings.Repeat("canary", 128) + "}":        "security.password: is too long; user, colon and password may have 768 bytes together",
		"security: {credentials_file: ''}":                                   "security.credentials_file: is empty",
		"security: {tokens: {a: {}}}":                                        "security.tokens: must be a list",
		"security: {tokens: [{token: canary, scopes: [read]}]}":              "security.tokens.0.name: is empty",
		"security: {tokens: [{name: a, token: canary}]}":                     "security.tokens.0.scopes: is empty; list some of submit, read, observe, operate, payloads",
		"security: {tokens: [{name: a, tokn: canary}]}":                      "unknown key security.tokens.0.tokn",
		token("tenant: a"):                                                   "security.tokens.0.token: set either this or token_sha256",
		token("token: canary, token_sha256: canary"):                         "security.tokens.0.token: set either this or token_sha256",
		token("token_sha256: canary"):                                        "security.tokens.0.token_sha256: is not 64 hexadecimal digits",
		token("token: 'canary canary'"):                                      "security.tokens.0.token: contains characters",
		token("token: canary" + strings.Repeat("x", 1024)):                   "security.tokens.0.token: is longer than 1024 bytes",
		token("token: '${BLANK}'"):                                           "security.tokens.0.token: the variables it names are empty",
		token(`token: canary, tenant: "a\u0000"`):                            "security.tokens.0.tenant",
		token("token: canary, scopes: [all]"):                                "holdfast.yaml",
		"security: {tokens: [{name: a, token: canary, scopes: [all]}]}":      `security.tokens.0.scopes: "all" is not one of submit, read, observe, operate, payloads`,
		"security: {tokens: [{name: a, token: canary, scopes: [payloads]}]}": "security.tokens.0.scopes: payloads alone opens nothing; add observe",
		"security: {tokens: [{name: a, token: canary1, scopes: [read]}, {name: a, token: canary2, scopes: [read]}]}": `security.tokens.1.name: "a" is taken`,
		"security: {tokens: [{name: a, token: canary, scopes: [read]}, {name: b, token: canary, scopes: [read]}]}":   "security.tokens.1: is the same as another token",
		"rate_limit: {jobs_per_minute: 0}":         "rate_limit.jobs_per_minute: 0 is not from 1",
		"rate_limit: {reads_per_minute: 0}":        "rate_limit.reads_per_minute: 0 is not from 1",
		"rate_limit: {requeue_per_minute: -1}":     "rate_limit.requeue_per_minute: -1 is not from 1",
		"rate_limit: {exempt: [localhost]}":        `rate_limit.exempt: "localhost" is not a network`,
		"server: {trusted_proxies: [10.0.0.0/33]}": "server.trusted_proxies",
		"server: {max_connections: 0}":             "server.max_connections: 0 is below 1",
	} {
		_, err := Load(Sources{File: writeConfig(t, file), Environ: []string{"BLANK="}})
		require.ErrorContains(t, err, want, file)
		require.NotContains(t, err.Error(), "canary", file)
		require.NotContains(t, err.Error(), "4711", file)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	cfg := Defaults()
	cfg.Security.Password = "canary"
	cfg.Security.Tokens = []Token{{Name: "a", Token: "canary"}}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&log, nil), slog.NewTextHandler(&log, nil)} {
		slog.New(handler).Info("x", "config", cfg, "security", cfg.Security, "token", cfg.Security.Tokens[0].Token)
	}
	asJSON, err := json.Marshal(cfg)
	require.NoError(t, err)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		_, _ = fmt.Fprintf(&log, format, cfg)
		_, _ = fmt.Fprintf(&log, format, cfg.Security.Password)
	}
	require.NotContains(t, log.String()+string(asJSON), "canary")
	require.Contains(t, log.String(), "xxxxx")
	require.Equal(t, "canary", cfg.Security.Password.Reveal())
}
