package job

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// TypeTerms are the Terms of the jobs of a type whose submissions leave them out, as the
// handler declares them.
type TypeTerms struct {
	// ConcurrencyKey points to a string or a number in the payload, with which the job's
	// concurrency key ends; empty for none.
	ConcurrencyKey string `json:"concurrencyKey,omitempty"`
	// KeyClass is what the concurrency key begins with, before a colon. It is set if
	// ConcurrencyKey is.
	KeyClass string `json:"keyClass,omitempty"`
	// ConcurrencyLimit and OnConflict are for jobs with a concurrency key, whoever gave it
	// to them.
	ConcurrencyLimit int        `json:"concurrencyLimit,omitempty"`
	OnConflict       OnConflict `json:"onConflict,omitempty"`
	// FairnessKey points to a string or a number in the payload, the job's fairness key;
	// empty for none.
	FairnessKey string `json:"fairnessKey,omitempty"`
}

// Validate says what is wrong, for the handler's author.
func (t TypeTerms) Validate() error {
	if err := checkPlace("concurrency key", t.ConcurrencyKey); err != nil {
		return err
	}
	if err := checkPlace("fairness key", t.FairnessKey); err != nil {
		return err
	}
	switch keyed := t.ConcurrencyKey != ""; {
	case !keyed && t.KeyClass != "":
		return errors.New("a key class needs a concurrency key")
	case !keyed && t.ConcurrencyLimit != 0:
		return errors.New("a concurrency limit needs a concurrency key")
	case !keyed && t.OnConflict != "":
		return errors.New("on conflict needs a concurrency key")
	case !keyed:
		return nil
	case t.KeyClass == "":
		return errors.New("the concurrency key needs a key class, such as customer")
	case utf8.RuneCountInString(t.KeyClass) > MaxClassChars:
		return fmt.Errorf("the key class is longer than %d characters", MaxClassChars)
	case strings.ContainsFunc(t.KeyClass, unprintable), strings.Contains(t.KeyClass, ":"):
		return fmt.Errorf("the key class %q has a colon or a character that cannot be printed", t.KeyClass)
	case t.ConcurrencyLimit < 0 || t.ConcurrencyLimit > MaxConcurrencyLimit:
		return fmt.Errorf("concurrency limit %d is not between 1 and %d", t.ConcurrencyLimit, MaxConcurrencyLimit)
	}
	switch t.OnConflict {
	case "", ConflictQueue, ConflictCancelNewcomer, ConflictCancelOldest:
		return nil
	}
	return fmt.Errorf("on conflict %q is not one of queue, cancel_newcomer, cancel_oldest", t.OnConflict)
}

// checkPlace checks a pointer to a key in the payload; empty for none.
func checkPlace(what, pointer string) error {
	if pointer == "" {
		return nil
	}
	_, err := ParsePointer(pointer)
	switch {
	case len(pointer) > MaxPointerBytes:
		return fmt.Errorf("the pointer to the %s is longer than %d bytes", what, MaxPointerBytes)
	case strings.ContainsFunc(pointer, unprintable):
		return fmt.Errorf("the pointer %q to the %s has a character that cannot be printed", pointer, what)
	case err != nil:
		return fmt.Errorf("%q, the place of the %s, %w", pointer, what, err)
	}
	return nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
