package submission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// The bounds of values, besides those in the package job. The struct tags of v1.Submission
// describe them.
const (
	maxNameChars = 200 // of a job type or tenant
	maxTagChars  = 100

	maxTags     = 20
	maxKeyBytes = 255
	// The lowest smallint is left out, so that a priority can be negated.
	minPriority = -32767
	maxPriority = 32767
	maxAttempts = 1000
	minTimeout  = time.Millisecond
	maxTimeout  = 24 * time.Hour
)

// read reads a member's value into the submission. It returns false for null: many
// clients write null for members that they do not set.
func read(s *Item, name string, v []byte) (set bool, err error) {
	if string(v) == "null" && name != "jobType" && name != "payload" {
		return false, nil
	}
	n := 0
	switch name {
	case "jobType":
		s.Type, err = checked(v, checkName)
	case "payload":
		s.Payload = v[:len(v):len(v)]
	case "idempotencyKey":
		s.IdempotencyKey, err = checked(v, checkKey)
	case "priority":
		n, err = number(v, minPriority, maxPriority)
		s.Priority = int16(n)
	case "runAt":
		s.RunAt, err = instant(v)
	case "delay":
		s.Delay, err = duration(v, 0, job.MaxPeriod)
	case "maxAttempts":
		s.MaxAttempts, err = number(v, 1, maxAttempts)
	case "timeout":
		s.Timeout, err = duration(v, minTimeout, maxTimeout)
	case "tenant":
		s.Tenant, err = checked(v, checkName)
	case "tags", "uniqueBy":
		err = errors.New("must be a list of strings") // A list does not get here.
	case "hold":
		s.Hold, err = boolean(v)
	case "callbackUrl":
		s.CallbackURL, err = checked(v, job.CheckCallbackURL)
	case "concurrencyKey":
		s.Terms.ConcurrencyKey, err = checked(v, checkShared)
	case "concurrencyLimit":
		s.Terms.ConcurrencyLimit, err = number(v, 1, job.MaxConcurrencyLimit)
	case "onConflict":
		s.Terms.OnConflict, err = oneOf(v, job.ConflictQueue, job.ConflictCancelNewcomer, job.ConflictCancelOldest)
	case "fairnessKey":
		s.Terms.FairnessKey, err = checked(v, checkShared)
	case "expiresAt":
		s.ExpiresAt, err = instant(v)
	case "ttl":
		s.TTL, err = duration(v, job.MinPeriod, job.MaxPeriod)
	case "uniqueFor":
		s.unique().For, err = duration(v, job.MinPeriod, job.MaxPeriod)
	case "uniqueWhile":
		_, err = oneOf(v, "open")
		s.unique().WhileOpen = err == nil
	}
	return err == nil, err
}

func (i *Item) unique() *job.Unique {
	if i.Unique == nil {
		i.Unique = new(job.Unique)
	}
	return i.Unique
}

func text(v []byte) (string, error) {
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

// checked reads a string that must pass a check.
func checked(v []byte, check func(string) error) (string, error) {
	s, err := text(v)
	if err == nil {
		err = check(s)
	}
	if err != nil {
		return "", err
	}
	return s, nil
}

func checkName(s string) error { return CheckWord(s, maxNameChars) }

func checkTag(s string) error { return CheckWord(s, maxTagChars) }

// checkShared checks a key that jobs share.
func checkShared(s string) error { return CheckWord(s, job.MaxKeyChars) }

func checkPointer(s string) error {
	_, err := job.ParsePointer(s)
	return err
}

func checkKey(s string) error {
	if len(s) > maxKeyBytes {
		return fmt.Errorf("is longer than %d bytes", maxKeyBytes)
	}
	return CheckWord(s, maxKeyBytes)
}

// CheckWord reports what is wrong with a name, tag or key. It refuses characters that a
// database, a log or a terminal cannot handle. By now, a lone surrogate has become
// U+FFFD, so two different words would be equal.
func CheckWord(s string, maxChars int) error {
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

func number(v []byte, lowest, highest int) (int, error) {
	n, err := strconv.Atoi(string(v))
	if err != nil || n < lowest || n > highest {
		return 0, fmt.Errorf("must be a whole number from %d to %d", lowest, highest)
	}
	return n, nil
}

func oneOf[W ~string](v []byte, words ...W) (W, error) {
	s, err := text(v)
	if at := slices.Index(words, W(s)); err == nil && at >= 0 {
		return words[at], nil
	}
	if len(words) == 1 {
		return "", fmt.Errorf("must be %q", words[0])
	}
	return "", fmt.Errorf("must be one of %s", strings.Trim(fmt.Sprintf("%q", words), "[]"))
}

func duration(v []byte, lowest, highest time.Duration) (time.Duration, error) {
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

func instant(v []byte) (time.Time, error) {
	s, err := text(v)
	if err != nil {
		return time.Time{}, err
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return time.Time{}, errors.New("must be an RFC 3339 time, such as 2030-01-31T12:00:00Z")
	}
	if year := t.UTC().Year(); year < 1 || year > 9999 { // Answers could not show it.
		return time.Time{}, errors.New("must be in the years 1 to 9999, in UTC")
	}
	return t, nil
}

func boolean(v []byte) (bool, error) {
	switch string(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("must be true or false")
}
