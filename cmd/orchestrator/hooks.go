package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
)

// decodeHooks reads what YAML, variables and flags have into the types of
// config: text into anything, but no number into a duration.
func decodeHooks() mapstructure.DecodeHookFunc {
	return mapstructure.ComposeDecodeHookFunc(
		listFromPlaces,
		unitIsNeeded,
		mapstructure.StringToTimeDurationHookFunc(),
		mapstructure.TextUnmarshallerHookFunc(),
		listFromText,
		numberFromText,
	)
}

// listFromPlaces undoes numbered.
func listFromPlaces(from, to reflect.Type, data any) (any, error) {
	places, ok := data.(map[string]any)
	if !ok || from.Kind() != reflect.Map || !isList(to) {
		return data, nil
	}
	items := make([]any, len(places))
	for place, item := range places {
		i, err := strconv.Atoi(place)
		if err != nil || i >= len(items) {
			return nil, fmt.Errorf("there is no item %d before item %s", len(items)-1, place)
		}
		items[i] = item
	}
	return items, nil
}

// unitIsNeeded keeps timeout: 30 from meaning 30 nanoseconds.
func unitIsNeeded(_, to reflect.Type, data any) (any, error) {
	if _, ok := data.(string); ok {
		return data, nil
	}
	switch to {
	case reflect.TypeFor[time.Duration]():
		return nil, fmt.Errorf("write a duration with its unit, such as %vs", data)
	case reflect.TypeFor[byteSize]():
		return nil, fmt.Errorf("write a size with its unit, such as %vMiB", data)
	}
	return data, nil
}

// listFromText reads items parted by commas, or the JSON of a list, whose items
// may have commas in them.
func listFromText(_, to reflect.Type, data any) (any, error) {
	text, ok := data.(string)
	if !ok || to != reflect.TypeFor[[]string]() {
		return data, nil
	}
	items := []string{}
	switch {
	case strings.HasPrefix(strings.TrimSpace(text), "["):
		if json.Unmarshal([]byte(text), &items) != nil {
			// What is wrong is not shown: an argument may be a secret.
			return nil, errors.New(`what begins with [ must be a list of texts in JSON, such as ["-v","--fast"]`)
		}
	case text != "":
		items = strings.Split(text, ",")
	}
	return items, nil
}

// numberFromText reads what variables and flags can only have as text.
func numberFromText(_, to reflect.Type, data any) (any, error) {
	text, ok := data.(string)
	if !ok {
		return data, nil
	}
	text = strings.TrimSpace(text)
	var value any
	var err error
	switch to.Kind() {
	case reflect.Bool:
		value, err = strconv.ParseBool(text)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value, err = strconv.ParseInt(text, 10, 64)
	case reflect.Uint64:
		value, err = strconv.ParseUint(text, 10, 64)
	case reflect.Float64:
		value, err = strconv.ParseFloat(text, 64)
	default:
		return data, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%q is not a %s", text, to.Kind())
	}
	return value, nil
}

// plainError leaves out the headline that mapstructure writes above a list of
// errors.
func plainError(err error) error {
	var many interface {
		error
		Unwrap() []error
	}
	if errors.As(err, &many) {
		return many
	}
	return err
}
