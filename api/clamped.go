package api

import (
	"errors"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// clamped is a whole number that is brought into its span, however far it
// lies outside, rather than refused. It stays 0 when the request has none; no
// text sets it to 0.
type clamped[S span] struct{ n int }

// span is what a clamped number may be: 1 up to highest.
type span interface {
	highest() int
	// usual is taken when the request has none; 0 for nothing.
	usual() int
}

// limit is how many items a client wants at most.
type limit = clamped[pageSize]

type pageSize struct{}

func (pageSize) highest() int { return 1000 }
func (pageSize) usual() int   { return 100 }

func (c clamped[S]) value() int {
	if c.n == 0 {
		var s S
		return s.usual()
	}
	return c.n
}

// UnmarshalText accepts whole decimal numbers of any length.
func (c *clamped[S]) UnmarshalText(text []byte) error {
	digits, negative := strings.CutPrefix(string(text), "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return errors.New("not a whole number")
	}
	var s S
	c.n = 0
	for _, digit := range digits {
		c.n = min(c.n*10+int(digit-'0'), s.highest())
	}
	if negative {
		c.n = 1
	}
	c.n = max(c.n, 1)
	return nil
}

// Schema describes the number in the OpenAPI document. It has no bounds:
// whatever lies outside of them is taken for the nearest.
func (clamped[S]) Schema(huma.Registry) *huma.Schema {
	var s S
	schema := &huma.Schema{Type: huma.TypeInteger}
	if s.usual() > 0 {
		schema.Default = s.usual()
	}
	return schema
}
