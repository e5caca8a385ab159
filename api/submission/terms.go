package submission

import (
	"errors"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Complete fills in the terms that the submission leaves out, as its job type declares
// them; nil for nothing. The mistakes are values in the payload that cannot be keys.
func Complete(s *job.Submission, declared *job.TypeTerms) (mistakes []v1.Mistake) {
	if declared == nil {
		return nil
	}
	fill := func(key *string, what, place, prefix string) {
		if *key != "" || place == "" {
			return
		}
		// The manifest has been checked.
		pointer, _ := job.ParsePointer(place)
		value, err := keyAt(s.Payload, pointer)
		if err == nil && value != "" {
			*key = prefix + value
			err = checkShared(*key)
		}
		if err != nil {
			mistakes = append(mistakes, v1.Mistake{
				Location: Pointer(append([]string{"payload"}, pointer...)...),
				Message:  err.Error() + ": the " + what + " of " + Shortened(s.Type) + " comes from it",
			})
		}
	}
	fill(&s.Terms.ConcurrencyKey, "concurrency key", declared.ConcurrencyKey, declared.KeyClass+":")
	fill(&s.Terms.FairnessKey, "fairness key", declared.FairnessKey, "")
	if s.Terms.ConcurrencyKey == "" {
		return mistakes
	}
	if s.Terms.ConcurrencyLimit == 0 {
		s.Terms.ConcurrencyLimit = declared.ConcurrencyLimit
	}
	if s.Terms.OnConflict == "" {
		s.Terms.OnConflict = declared.OnConflict
	}
	return mistakes
}

// keyAt returns the value that a pointer into a payload leads to, as a text; empty for
// none and for null.
func keyAt(payload []byte, pointer job.Pointer) (string, error) {
	found := Find(payload, pointer)
	if found == nil {
		return "", nil
	}
	switch c := found[0]; {
	case c == 'n':
		return "", nil
	case c == '"':
		return checked(found, checkShared)
	case c == '-' || c >= '0' && c <= '9':
		return plainNumber(string(found)), nil
	}
	return "", errors.New("must be a string or a number")
}
