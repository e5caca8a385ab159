package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// optional reads a member into the place it is kept at, and leaves the place
// empty for null: many clients write null for what they do not set.
func optional[T any](place func(*request) **T, read func(json.RawMessage) (T, error)) func(*request, json.RawMessage) error {
	return func(r *request, v json.RawMessage) error {
		if string(v) == "null" {
			return nil
		}
		value, err := read(v)
		if err == nil {
			*place(r) = &value
		}
		return err
	}
}

func text(v json.RawMessage) (string, error) {
	if v[0] != '"' {
		return "", errors.New("must be a string")
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), nil
	}
	var s string
	if err := json.Unmarshal(v, &s); err != nil {
		return "", errors.New("must be a string")
	}
	return s, nil
}

// name reads a job type or a tenant.
func name(v json.RawMessage) (string, error) {
	s, err := text(v)
	if err != nil {
		return "", err
	}
	return s, checkName(s, maxNameChars)
}

func key(v json.RawMessage) (string, error) {
	s, err := text(v)
	if err != nil {
		return "", err
	}
	return s, checkKey(s)
}

func checkKey(s string) error {
	if len(s) > maxKeyBytes {
		return fmt.Errorf("is longer than %d bytes", maxKeyBytes)
	}
	return checkName(s, maxKeyBytes)
}

// checkName refuses what a database, a log or a terminal would choke on. A
// lone surrogate has become U+FFFD by now, and two different names would have
// become the same one.
func checkName(s string, maxChars int) error {
	switch {
	case s == "":
		return errors.New("must not be empty")
	case utf8.RuneCountInString(s) > maxChars:
		return fmt.Errorf("is longer than %d characters", maxChars)
	case !utf8.ValidString(s):
		return errors.New("is not UTF-8")
	case strings.ContainsFunc(s, unicode.IsControl):
		return errors.New("must not contain NUL or other control characters")
	case strings.ContainsRune(s, utf8.RuneError):
		return errors.New("must not contain lone surrogates or U+FFFD")
	}
	return nil
}

func number(lowest, highest int) func(json.RawMessage) (int, error) {
	return func(v json.RawMessage) (int, error) {
		n, err := strconv.Atoi(string(v))
		if err != nil || n < lowest || n > highest {
			return 0, fmt.Errorf("must be a whole number from %d to %d", lowest, highest)
		}
		return n, nil
	}
}

func duration(lowest, highest time.Duration) func(json.RawMessage) (time.Duration, error) {
	return func(v json.RawMessage) (time.Duration, error) {
		s, err := text(v)
		if err != nil {
			return 0, errors.New(`must be a duration in a string, such as "30s"`)
		}
		d, err := time.ParseDuration(s)
		if err != nil || d < lowest || d > highest {
			return 0, fmt.Errorf(`must be a duration from %s to %s, such as "30s"`, lowest, highest)
		}
		return d, nil
	}
}

func instant(v json.RawMessage) (time.Time, error) {
	s, err := text(v)
	if err != nil {
		return time.Time{}, err
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return time.Time{}, errors.New("must be an RFC 3339 time, such as 2030-01-31T12:00:00Z")
	}
	if year := t.UTC().Year(); year < 1 || year > 9999 { // which no answer could show
		return time.Time{}, errors.New("must be in the years 1 to 9999, in UTC")
	}
	return t, nil
}

func boolean(v json.RawMessage) (bool, error) {
	switch string(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("must be true or false")
}

// itemError is a mistake in one item of a list.
type itemError struct {
	index string
	err   error
}

func (e *itemError) Error() string { return e.err.Error() }

func tags(v json.RawMessage) ([]string, error) {
	if v[0] != '[' {
		return nil, errors.New("must be a list of strings")
	}
	words := []string{}
	var mistake error
	count := 0
	eachItem(v, func(item []byte) bool {
		if count++; count > maxTags {
			mistake = fmt.Errorf("has more than %d items", maxTags)
			return false
		}
		word, err := text(item)
		if err == nil {
			err = checkName(word, maxTagChars)
		}
		if err != nil && mistake == nil {
			mistake = &itemError{index: strconv.Itoa(count - 1), err: err}
		}
		words = append(words, word)
		return true
	})
	if mistake != nil {
		return nil, mistake
	}
	return words, nil
}
