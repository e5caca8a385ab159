package config

import (
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Secret is a setting that prints as xxxxx. Only Reveal returns it.
type Secret string

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// TrimLineEnd drops the line end of a text that was read from a file.
func TrimLineEnd(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}

// String is for people and logs. It shows only whether there is a secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "xxxxx"
}

// GoString is for %#v, which ignores String.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// LogValue is for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// DatabaseURL is a PostgreSQL connection URL or keyword string. It prints
// without its password. Only Reveal returns it.
type DatabaseURL string

var (
	passwordKeyword = regexp.MustCompile(`(?i)\b(ssl)?password\s*=\s*('(\\.|[^'\\])*'?|\S+)`)
	passwordQuery   = regexp.MustCompile(`(?i)([?&](?:ssl)?password=)[^&#]*`)
)

// Reveal returns the URL with its password.
func (u DatabaseURL) Reveal() string { return string(u) }

// Check returns why the URL is unusable. It quotes nothing: in a malformed URL the
// password may be anywhere.
func (u DatabaseURL) Check() error {
	_, err := pgx.ParseConfig(u.Reveal())
	if err == nil {
		return nil
	}
	reason := err.Error()
	if quoted := strings.LastIndex(reason, "`: "); quoted >= 0 {
		reason = reason[quoted+len("`: "):]
	}
	return fmt.Errorf("is not the URL of a PostgreSQL database: %s", reason)
}

// String is for people and logs.
func (u DatabaseURL) String() string {
	if !strings.Contains(string(u), "://") {
		return passwordKeyword.ReplaceAllString(string(u), "${1}password=xxxxx")
	}
	parsed, err := url.Parse(string(u))
	if err != nil {
		return "(a malformed URL)"
	}
	return passwordQuery.ReplaceAllString(parsed.Redacted(), "${1}xxxxx")
}

// GoString is for %#v, which ignores String.
func (u DatabaseURL) GoString() string { return u.String() }

// LogValue is for slog.
func (u DatabaseURL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText is for JSON and YAML.
func (u DatabaseURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// Size is a number of bytes, written with a unit: 512MiB, 2GB.
type Size uint64

var units = []struct {
	name  string
	bytes uint64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"kB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"B", 1},
}

// UnmarshalText reads a whole number and a unit.
func (s *Size) UnmarshalText(text []byte) error {
	for _, unit := range units {
		digits, found := strings.CutSuffix(string(text), unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
		if err != nil || n > math.MaxInt64/unit.bytes {
			break
		}
		*s = Size(n * unit.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 512MiB", text)
}
