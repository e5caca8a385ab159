package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

// Security says who may call the API.
type Security struct {
	Enabled         bool    `koanf:"enabled"`
	User            string  `koanf:"user"`
	Password        Secret  `koanf:"password"`
	CredentialsFile string  `koanf:"credentials_file"`
	Tokens          []Token `koanf:"tokens"`
	AllowPublic     bool    `koanf:"allow_public"`
}

// Token is the token of one client.
type Token struct {
	Name   string   `koanf:"name"`
	Token  Secret   `koanf:"token"`
	SHA256 string   `koanf:"token_sha256" show:"no"`
	Scopes []string `koanf:"scopes"`
	Tenant string   `koanf:"tenant"`
}

// RateLimit bounds what each client may do within a minute.
type RateLimit struct {
	Enabled          bool     `koanf:"enabled"`
	JobsPerMinute    int      `koanf:"jobs_per_minute"`
	RequeuePerMinute int      `koanf:"requeue_per_minute"`
	ReadsPerMinute   int      `koanf:"reads_per_minute"`
	Exempt           []string `koanf:"exempt"`
}

func defaultSecurity() Security {
	return Security{Enabled: true, User: "admin", CredentialsFile: "data/credentials"}
}

func defaultRateLimit() RateLimit {
	return RateLimit{
		Enabled: true, JobsPerMinute: 6000, RequeuePerMinute: 300, ReadsPerMinute: 12_000, Exempt: []string{"127.0.0.0/8", "::1/128"},
	}
}

// Closed reports whether submitting and reading need credentials.
func (s *Security) Closed(public bool) bool { return s.Enabled && (public || len(s.Tokens) > 0) }

const (
	// maxTokenBytes is the API's limit.
	maxTokenBytes = 1 << 10
	// maxPerMinute keeps a count within 32 bits.
	maxPerMinute = 1_000_000_000
	// maxTenantChars is the limit in a submission.
	maxTenantChars = 200
)

// finish resolves references and checks. Its errors begin with the key and never
// contain the value.
func (s *Security) finish(environ []string) error {
	variables := Variables(environ)
	user, err := expand(s.User, variables)
	if err != nil {
		return fmt.Errorf("user: %w", err)
	}
	s.User = user
	if err := s.Password.expand(variables); err != nil {
		return fmt.Errorf("password: %w", err)
	}
	switch {
	case s.User == "" || strings.ContainsFunc(s.User, func(r rune) bool { return r == ':' || unicode.IsControl(r) }):
		return errors.New("user: must not be empty or contain a colon or control characters")
	case strings.ContainsAny(s.Password.Reveal(), "\r\n"):
		return errors.New("password: contains a line break")
	case len(s.User)+1+len(s.Password) > guard.MaxLogin:
		return fmt.Errorf("password: is too long; user, colon and password may have %d bytes together", guard.MaxLogin)
	case s.CredentialsFile == "":
		return errors.New("credentials_file: is empty")
	}
	digests := map[guard.Digest]bool{}
	names := map[string]bool{}
	for i := range s.Tokens {
		t := &s.Tokens[i]
		if err := t.finish(variables); err != nil {
			return fmt.Errorf("tokens.%d.%w", i, err)
		}
		if names[t.Name] {
			return fmt.Errorf("tokens.%d.name: %q is taken by another token", i, t.Name)
		}
		if digests[t.Digest()] {
			return fmt.Errorf("tokens.%d: is the same as another token", i)
		}
		names[t.Name], digests[t.Digest()] = true, true
	}
	return nil
}

func (t *Token) finish(variables map[string]string) error {
	if err := t.Token.expand(variables); err != nil {
		return fmt.Errorf("token: %w", err)
	}
	sum, err := expand(t.SHA256, variables)
	if err != nil {
		return fmt.Errorf("token_sha256: %w", err)
	}
	t.SHA256 = strings.ToLower(TrimLineEnd(sum))
	switch {
	case t.Name == "":
		return errors.New("name: is empty")
	case (t.Token == "") == (t.SHA256 == ""):
		return errors.New("token: set either this or token_sha256")
	case t.SHA256 != "" && !isSHA256(t.SHA256):
		// Do not quote it: it may be the token itself.
		return errors.New("token_sha256: is not 64 hexadecimal digits")
	case len(t.Token) > maxTokenBytes:
		return fmt.Errorf("token: is longer than %d bytes", maxTokenBytes)
	case strings.ContainsFunc(t.Token.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("token: contains characters that no header can carry; use letters and digits")
	case len(t.Scopes) == 0:
		return errors.New("scopes: is empty; list some of " + scopeNames())
	case len([]rune(t.Tenant)) > maxTenantChars || strings.ContainsFunc(t.Tenant, unicode.IsControl):
		return fmt.Errorf("tenant: is longer than %d characters or contains control characters", maxTenantChars)
	}
	for _, scope := range t.Scopes {
		if !slices.Contains(guard.Scopes(), guard.Scope(scope)) {
			return fmt.Errorf("scopes: %q is not one of %s", scope, scopeNames())
		}
	}
	if !slices.ContainsFunc(t.Scopes, func(scope string) bool { return scope != string(guard.Payloads) }) {
		return errors.New("scopes: payloads alone opens nothing; add observe")
	}
	return nil
}

func scopeNames() string {
	var names []string
	for _, scope := range guard.Scopes() {
		names = append(names, string(scope))
	}
	return strings.Join(names, ", ")
}

// expand resolves references and drops the line end of a secret that came from a
// file. An empty result is an error: the secret would count as not set.
func (s *Secret) expand(variables map[string]string) error {
	expanded, err := expand(s.Reveal(), variables)
	expanded = TrimLineEnd(expanded)
	if err == nil && expanded == "" && *s != "" {
		err = errors.New("the variables it names are empty")
	}
	*s = Secret(expanded)
	return err
}

// isSHA256 reports whether a text is the hexadecimal form of a SHA-256.
func isSHA256(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}

// Digest identifies the token without revealing it.
func (t *Token) Digest() guard.Digest {
	if t.Token != "" {
		return guard.DigestOf(t.Token.Reveal())
	}
	var digest guard.Digest
	_, _ = hex.Decode(digest[:], []byte(t.SHA256)) // finish has checked it.
	return digest
}

func (r RateLimit) check() error {
	for name, quota := range map[string]int{
		"jobs_per_minute": r.JobsPerMinute, "requeue_per_minute": r.RequeuePerMinute, "reads_per_minute": r.ReadsPerMinute,
	} {
		if quota < 1 || quota > maxPerMinute {
			return fmt.Errorf("%s: %d is not from 1 to %d; rate_limit.enabled=false sets no limit", name, quota, maxPerMinute)
		}
	}
	_, err := Networks(r.Exempt)
	if err != nil {
		return fmt.Errorf("exempt: %w", err)
	}
	return nil
}

// Networks parses CIDR prefixes. A bare address is a network of one.
func Networks(texts []string) ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if address, addressErr := netip.ParseAddr(text); err != nil && addressErr == nil {
			prefix, err = address.Unmap().Prefix(address.Unmap().BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("%q is not a network such as 10.0.0.0/8", text)
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}
