package main

import (
	"log/slog"
	"strings"
)

// secret is a setting that prints as xxxxx; only reveal has it.
type secret string

func (s secret) reveal() string { return string(s) }

// withoutLineEnd drops one line end, with which a text comes out of a file.
func withoutLineEnd(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}

// String is for people and logs. It tells whether there is one.
func (s secret) String() string {
	if s == "" {
		return ""
	}
	return "xxxxx"
}

// GoString is for %#v, which would go around String.
func (s secret) GoString() string { return `"` + s.String() + `"` }

// LogValue is for slog.
func (s secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is for JSON and YAML.
func (s secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
