package config

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

// decodeHooks convert the values of YAML, variables and flags to the types of
// Config. A text converts to anything; a bare number is no duration and no size.
func decodeHooks() mapstructure.DecodeHookFunc {
	return mapstructure.ComposeDecodeHookFunc(
		listFromIndexes,
		unitIsNeeded,
		durationFromText,
		mapstructure.TextUnmarshallerHookFunc(),
		listFromText,
		numberFromText,
		keysAreNeeded,
	)
}

// keysAreNeeded names what a section is in words of YAML, where mapstructure would name a
// type of Go.
func keysAreNeeded(from, to reflect.Type, data any) (any, error) {
	if to.Kind() != reflect.Map && to.Kind() != reflect.Struct {
		return data, nil
	}
	switch from.Kind() {
	case reflect.Slice:
		return nil, errors.New("must have keys, not a list of items; for none, write {}")
	case reflect.String, reflect.Bool, reflect.Int, reflect.Float64:
		return nil, errors.New("must have keys, not a single value; for none, write {}")
	default:
		return data, nil
	}
}

// listFromIndexes reverses byIndex.
func listFromIndexes(from, to reflect.Type, data any) (any, error) {
	indexed, ok := data.(map[string]any)
	if !ok || from.Kind() != reflect.Map || !isList(to) {
		return data, nil
	}
	items := make([]any, len(indexed))
	for at, item := range indexed {
		i, err := strconv.Atoi(at)
		if err != nil || i >= len(items) {
			return nil, fmt.Errorf("there is no item %d before item %s", len(items)-1, at)
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
	if at, ok := data.(time.Time); ok && to == reflect.TypeFor[Instant]() {
		return at.Format(time.RFC3339Nano), nil // YAML knows times without quotes
	}
	switch to {
	case reflect.TypeFor[time.Duration]():
		return nil, fmt.Errorf("write a duration with its unit, such as %vs", data)
	case reflect.TypeFor[Kept]():
		return nil, fmt.Errorf("write keep, or a duration with its unit, such as %vh", data)
	case reflect.TypeFor[Rate]():
		return nil, fmt.Errorf("write a rate with its period, such as %v/1m", data)
	case reflect.TypeFor[Size]():
		return nil, fmt.Errorf("write a size with its unit, such as %vMiB", data)
	}
	return data, nil
}

// What values must be. These complete a sentence that ends in "is not".
const (
	ABool        = "true or false"
	AWholeNumber = "a whole number"
	ANumber      = "a number"
	ADuration    = "a duration; write 500ms, 30s or 1h30m"
)

// Wrong says that a text that does not parse is not what it must be, or is out of range.
func Wrong(text, wanted string, err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%q is out of range", text)
	}
	return fmt.Errorf("%q is not %s", text, wanted)
}

func durationFromText(_, to reflect.Type, data any) (any, error) {
	text, ok := data.(string)
	if !ok || to != reflect.TypeFor[time.Duration]() {
		return data, nil
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		return nil, Wrong(text, ADuration, err)
	}
	return duration, nil
}

// listFromText reads items separated by commas, or a JSON list, whose items may
// contain commas.
func listFromText(_, to reflect.Type, data any) (any, error) {
	text, ok := data.(string)
	if !ok || to != reflect.TypeFor[[]string]() {
		return data, nil
	}
	items := []string{}
	switch {
	case strings.HasPrefix(strings.TrimSpace(text), "["):
		if json.Unmarshal([]byte(text), &items) != nil {
			// The error does not quote the text, which may be a secret.
			return nil, errors.New(`a value that begins with [ must be a JSON list of strings, such as ["-v","--fast"]`)
		}
	case text != "":
		items = strings.Split(text, ",")
	}
	return items, nil
}

// numberFromText reads numbers and booleans from variables and flags.
func numberFromText(_, to reflect.Type, data any) (any, error) {
	text, ok := data.(string)
	if !ok {
		return data, nil
	}
	text = strings.TrimSpace(text)
	var value any
	var err error
	wanted := AWholeNumber
	switch to.Kind() {
	case reflect.Bool:
		wanted = ABool
		value, err = strconv.ParseBool(text)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value, err = strconv.ParseInt(text, 10, 64)
	case reflect.Uint64:
		value, err = strconv.ParseUint(text, 10, 64)
	case reflect.Float64:
		wanted = ANumber
		value, err = strconv.ParseFloat(text, 64)
	default:
		return data, nil
	}
	if err != nil {
		return nil, Wrong(text, wanted, err)
	}
	return value, nil
}

// withoutHeadline drops the headline that mapstructure puts above a list of errors.
func withoutHeadline(err error) error {
	var many interface {
		error
		Unwrap() []error
	}
	if errors.As(err, &many) {
		return many
	}
	return err
}
