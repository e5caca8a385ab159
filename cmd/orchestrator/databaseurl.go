package main

import (
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// databaseURL is a PostgreSQL connection URL or keyword string. It prints
// without its password; only reveal has it.
type databaseURL string

var (
	passwordKeyword = regexp.MustCompile(`(?i)\b(ssl)?password\s*=\s*('(\\.|[^'\\])*'?|\S+)`)
	passwordQuery   = regexp.MustCompile(`(?i)([?&](?:ssl)?password=)[^&#]*`)
)

func (u databaseURL) reveal() string { return string(u) }

// check returns why no connection could be made with the URL. It quotes nothing
// of it, since a password in a malformed one may be anywhere.
func (u databaseURL) check() error {
	_, err := pgx.ParseConfig(u.reveal())
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
func (u databaseURL) String() string {
	if !strings.Contains(string(u), "://") {
		return passwordKeyword.ReplaceAllString(string(u), "${1}password=xxxxx")
	}
	parsed, err := url.Parse(string(u))
	if err != nil {
		return "(a malformed URL)"
	}
	return passwordQuery.ReplaceAllString(parsed.Redacted(), "${1}xxxxx")
}

// GoString is for %#v, which would go around String.
func (u databaseURL) GoString() string { return u.String() }

// LogValue is for slog.
func (u databaseURL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText is for JSON and YAML.
func (u databaseURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }
