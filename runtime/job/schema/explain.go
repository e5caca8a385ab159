package schema

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// explain says what is wrong with a schema and, except for references, where.
func explain(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var refused *jsonschema.ValidationError
	var pattern *jsonschema.InvalidRegexError
	var load *jsonschema.LoadURLError
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &refused):
		f := findings{ofSchema: true}
		f.collect(refused)
		first := f.violations()[0]
		return at(placeIn(invalid.URL)+first.Pointer, "it "+first.Message)
	case errors.As(err, &pattern):
		return at(placeIn(pattern.URL), fmt.Sprintf("the pattern cannot be used: %v", pattern.Err))
	case errors.As(err, &load):
		return fmt.Errorf("%q %w", cut(strings.TrimPrefix(load.URL, base), maxPart), errOutside)
	}
	return errors.New(cut(strings.ReplaceAll(err.Error(), base, ""), maxWords))
}

func at(place, problem string) error {
	if place == "" {
		return errors.New(problem)
	}
	return fmt.Errorf("at %s: %s", cut(place, maxPart), problem)
}

// placeIn returns the JSON Pointer in one of the library's URLs.
func placeIn(address string) string {
	_, fragment, _ := strings.Cut(address, "#")
	if place, err := url.PathUnescape(fragment); err == nil {
		return place
	}
	return fragment
}
