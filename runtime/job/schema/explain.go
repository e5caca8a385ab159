package schema

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// explain says what is wrong with a schema, and where.
func explain(err error, document any) error {
	var invalid *jsonschema.SchemaValidationError
	var pattern *jsonschema.InvalidRegexError
	var load *jsonschema.LoadURLError
	switch {
	case errors.As(err, &invalid):
		return explainInvalid(invalid)
	case errors.As(err, &pattern):
		return at(placeIn(pattern.URL), fmt.Sprintf("the pattern cannot be used: %v", pattern.Err))
	case errors.As(err, &load):
		place, _ := findReference(document, load.URL, nil)
		return at(pointer(place), fmt.Sprintf("%.200q %v", strings.TrimPrefix(load.URL, base), errOutside))
	}
	return errors.New(cut(strings.ReplaceAll(err.Error(), base, "")))
}

func at(place, problem string) error {
	if place == "" {
		return errors.New(problem)
	}
	return fmt.Errorf("at %s: %s", short(place), problem)
}

// explainInvalid is about keywords with values that they cannot have.
func explainInvalid(invalid *jsonschema.SchemaValidationError) error {
	var refused *jsonschema.ValidationError
	if !errors.As(invalid.Err, &refused) {
		return invalid
	}
	within := placeIn(invalid.URL)
	if place, format := findFormat(refused); format != nil {
		return at(within+pointer(place), fmt.Sprintf("it is no valid %s: %v", format.Want, format.Err))
	}
	var f findings
	f.collect(refused)
	first := f.violations()[0]
	return at(within+first.Pointer, "it "+first.Message)
}

// findFormat finds the first text that is not of its format, such as a pattern
// that does not compile; the reason is worth telling.
func findFormat(refused *jsonschema.ValidationError) (place []string, found *kind.Format) {
	if format, ok := refused.ErrorKind.(*kind.Format); ok {
		return refused.InstanceLocation, format
	}
	for _, cause := range refused.Causes {
		if place, found := findFormat(cause); found != nil {
			return place, found
		}
	}
	return nil, nil
}

// findReference finds where a schema refers to what it does not hold.
func findReference(value any, target string, path []string) (place []string, found bool) {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			if place, found := findReference(item, target, append(path, strconv.Itoa(i))); found {
				return place, true
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			within := append(path, name)
			if reference, isText := value[name].(string); isText && refersTo(name, reference, target) {
				return within, true
			}
			if place, found := findReference(value[name], target, within); found {
				return place, true
			}
		}
	}
	return nil, false
}

func refersTo(keyword, reference, target string) bool {
	switch keyword {
	case "$ref", "$dynamicRef", "$recursiveRef", "$schema":
		reference, _, _ = strings.Cut(reference, "#")
		return reference != "" && strings.HasSuffix(target, strings.TrimLeft(reference, "./"))
	}
	return false
}

// placeIn returns the JSON Pointer in an address of the library's.
func placeIn(address string) string {
	_, fragment, _ := strings.Cut(address, "#")
	if place, err := url.PathUnescape(fragment); err == nil {
		return place
	}
	return fragment
}
