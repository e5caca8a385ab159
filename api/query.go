package api

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// query is embedded in the input of every operation. A parameter that is
// misspelled, empty or not for this operation is refused: whoever sent it meant
// something by it, and of lists it would let through everything.
type query struct {
	exchange
	values url.Values
}

// plainInput is that of operations without any parameters.
type plainInput struct{ query }

// Resolve is called by huma before the operation.
func (q *query) Resolve(ctx huma.Context) []error {
	q.exchange.Resolve(ctx)
	if q.request.URL.RawQuery == "" {
		return nil
	}
	var err error
	if q.values, err = url.ParseQuery(q.request.URL.RawQuery); err != nil {
		return []error{&huma.ErrorDetail{Location: "query", Message: "cannot be read"}}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		message := mistakeIn(q.values[name], parameterOf(ctx.Operation(), name))
		if message != "" && len(errs) < maxErrors {
			errs = append(errs, &huma.ErrorDetail{Location: "query." + shortened(name), Message: message})
		}
	}
	return errs
}

func mistakeIn(values []string, parameter *huma.Param) string {
	switch {
	case parameter == nil:
		return "is not known"
	case slices.Contains(values, ""):
		return "must not be empty"
	case len(values) > 1 && !*parameter.Explode:
		return "is there twice"
	}
	return ""
}

func parameterOf(operation *huma.Operation, name string) *huma.Param {
	for _, parameter := range operation.Parameters {
		if parameter.In == "query" && parameter.Name == name {
			return parameter
		}
	}
	return nil
}

// next is the Link header that names the page after the cursor.
func (q *query) next(cursor string) string {
	if cursor == "" {
		return ""
	}
	if q.values == nil {
		q.values = url.Values{}
	}
	q.values.Set("cursor", cursor)
	return "<" + (&url.URL{Path: q.request.URL.Path, RawQuery: q.values.Encode()}).String() + `>; rel="next"`
}

// wanted is a name to choose by: a job type or a tenant.
type wanted struct{ name string }

// UnmarshalText accepts what a submission may be named.
func (w *wanted) UnmarshalText(text []byte) error {
	w.name = string(text)
	return checkName(w.name, maxNameChars)
}

// Schema describes the name in the OpenAPI document.
func (wanted) Schema(huma.Registry) *huma.Schema { return wordOf(maxNameChars) }

// wantedTag is a tag to choose by.
type wantedTag struct{ name string }

// UnmarshalText accepts what a submission may have for a tag.
func (w *wantedTag) UnmarshalText(text []byte) error {
	w.name = string(text)
	return checkName(w.name, maxTagChars)
}

// Schema describes the tag in the OpenAPI document.
func (wantedTag) Schema(huma.Registry) *huma.Schema { return wordOf(maxTagChars) }

// wordOf describes a text of 1 to so many characters.
func wordOf(most int) *huma.Schema {
	least := 1
	return &huma.Schema{Type: huma.TypeString, MinLength: &least, MaxLength: &most}
}

// moment is an instant in a query.
type moment struct{ time.Time }

// UnmarshalText accepts RFC 3339 to the letter.
func (m *moment) UnmarshalText(text []byte) error {
	if m.Time.UnmarshalText(text) != nil {
		return errors.New("must be an RFC 3339 time, such as 2030-01-31T12:00:00Z")
	}
	return nil
}

// Schema describes the instant in the OpenAPI document.
func (moment) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
}
