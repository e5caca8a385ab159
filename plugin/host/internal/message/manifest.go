package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

// The limits of a manifest.
const (
	maxTypes       = 10_000
	maxTypeName    = 200
	maxVersion     = 200
	maxDescription = 1000
	maxAttempts    = 1_000_000
	maxConcurrency = 10_000
)

// Longest bounds every duration that a plugin sends. Longer ones would overflow on the way
// to the database.
const Longest = 10 * 365 * 24 * time.Hour

// Manifest is what a plugin declares about itself.
type Manifest struct {
	raw *handlerv1.DescribeResponse
	// Version is empty, and Concurrency 0, if the plugin declares none.
	Version     string
	Concurrency int
	// Types are the names of the job types. Specs describe them in the same order.
	Types []string
	Specs []job.TypeSpec
	// SkippedTypes are the names of the job types that Without has removed.
	SkippedTypes []string
}

// ReadManifest checks the manifest that a process of the plugin has sent. Operators
// read its error.
func ReadManifest(plugin string, raw *handlerv1.DescribeResponse) (*Manifest, error) {
	if err := checkText("version", raw.GetVersion(), maxVersion); err != nil && raw.GetVersion() != "" {
		return nil, err
	}
	switch n := len(raw.GetJobTypes()); {
	case n == 0:
		return nil, errors.New("it declares no job type")
	case n > maxTypes:
		return nil, fmt.Errorf("it declares %d job types, more than %d", n, maxTypes)
	case raw.GetConcurrency() > maxConcurrency:
		return nil, fmt.Errorf("concurrency %d is above %d", raw.GetConcurrency(), maxConcurrency)
	}
	m := &Manifest{raw: raw, Version: raw.GetVersion(), Concurrency: int(raw.GetConcurrency())}
	seen := make(map[string]bool)
	for _, declared := range raw.GetJobTypes() {
		spec, err := readType(declared)
		if err != nil {
			return nil, fmt.Errorf("job type %.*q: %w", maxTypeName, declared.GetName(), err)
		}
		if seen[spec.Type] {
			return nil, fmt.Errorf("job type %q is declared twice", spec.Type)
		}
		seen[spec.Type] = true
		spec.Plugin, spec.Version = plugin, m.Version
		m.Types = append(m.Types, spec.Type)
		m.Specs = append(m.Specs, spec)
	}
	return m, nil
}

func readType(declared *handlerv1.JobType) (job.TypeSpec, error) {
	spec := job.TypeSpec{Type: declared.GetName(), MaxAttempts: int(declared.GetMaxAttempts())}
	if err := checkText("name", spec.Type, maxTypeName); err != nil {
		return spec, err
	}
	if spec.MaxAttempts > maxAttempts {
		return spec, fmt.Errorf("max attempts %d is above %d", spec.MaxAttempts, maxAttempts)
	}
	if declared.GetConcurrency() > maxConcurrency {
		return spec, fmt.Errorf("concurrency %d is above %d", declared.GetConcurrency(), maxConcurrency)
	}
	spec.Concurrency = int(declared.GetConcurrency())
	if spec.Description = declared.GetDescription(); spec.Description != "" {
		if err := checkText("description", spec.Description, maxDescription); err != nil {
			return spec, err
		}
	}
	if text := declared.GetSchema(); len(text) > 0 {
		if _, err := schema.Compile(text); err != nil {
			return spec, fmt.Errorf("schema: %w", err)
		}
		spec.Schema = text
	}
	var err error
	if spec.Timeout, err = duration("timeout", declared.GetTimeoutMs()); err != nil {
		return spec, err
	}
	if spec.Terms, err = readTerms(declared.GetTerms()); err != nil {
		return spec, fmt.Errorf("terms: %w", err)
	}
	if declared.GetRetry() == nil {
		return spec, nil
	}
	if spec.Retry, err = readRetry(declared.GetRetry()); err == nil {
		err = spec.Retry.Validate()
	}
	if err != nil {
		return spec, fmt.Errorf("retry: %w", err)
	}
	return spec, nil
}

func readRetry(declared *handlerv1.Retry) (job.RetryPolicy, error) {
	policy := job.RetryPolicy{
		Factor:                declared.GetFactor(),
		JitterMin:             declared.GetJitterMin(),
		JitterMax:             declared.GetJitterMax(),
		ImmediateAfterTimeout: declared.GetAtOnceAfterTimeout(),
	}
	switch declared.GetBackoff() {
	case handlerv1.Retry_BACKOFF_EXPONENTIAL:
		policy.Backoff = job.Exponential
	case handlerv1.Retry_BACKOFF_FIXED:
		policy.Backoff = job.Fixed
	case handlerv1.Retry_BACKOFF_IMMEDIATE:
		policy.Backoff = job.Immediate
	case handlerv1.Retry_BACKOFF_UNSPECIFIED:
		return policy, errors.New("no backoff is named")
	default:
		return policy, fmt.Errorf("backoff %d is unknown", declared.GetBackoff())
	}
	var err error
	if policy.InitialDelay, err = duration("base", declared.GetBaseMs()); err != nil {
		return policy, err
	}
	policy.MaxDelay, err = duration("cap", declared.GetCapMs())
	return policy, err
}

// readTerms returns nil for terms that ask for nothing.
func readTerms(declared *handlerv1.Terms) (*job.TypeTerms, error) {
	terms := job.TypeTerms{
		ConcurrencyKey: declared.GetConcurrencyKey(), KeyClass: declared.GetKeyClass(),
		ConcurrencyLimit: int(declared.GetConcurrencyLimit()), FairnessKey: declared.GetFairnessKey(),
	}
	switch declared.GetOnConflict() {
	case handlerv1.Terms_ON_CONFLICT_UNSPECIFIED:
	case handlerv1.Terms_ON_CONFLICT_QUEUE:
		terms.OnConflict = job.ConflictQueue
	case handlerv1.Terms_ON_CONFLICT_CANCEL_NEWCOMER:
		terms.OnConflict = job.ConflictCancelNewcomer
	case handlerv1.Terms_ON_CONFLICT_CANCEL_OLDEST:
		terms.OnConflict = job.ConflictCancelOldest
	default:
		return nil, fmt.Errorf("on conflict %d is unknown", declared.GetOnConflict())
	}
	if terms == (job.TypeTerms{}) {
		return nil, nil
	}
	return &terms, terms.Validate()
}

func checkText(what, text string, limit int) error {
	switch {
	case text == "":
		return fmt.Errorf("the %s is empty", what)
	case len(text) > limit:
		return fmt.Errorf("the %s is longer than %d bytes", what, limit)
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("the %s %q has a character that cannot be printed", what, text)
		}
	}
	return nil
}

func duration(what string, ms uint64) (time.Duration, error) {
	if ms > uint64(Longest/time.Millisecond) {
		return 0, fmt.Errorf("%s of %d ms is too long", what, ms)
	}
	return milliseconds(ms), nil
}

// milliseconds converts without overflow. Anything too long becomes Longest.
func milliseconds(ms uint64) time.Duration {
	if ms > uint64(Longest/time.Millisecond) {
		return Longest
	}
	return time.Duration(ms) * time.Millisecond
}

// toMilliseconds rounds down, so that it never makes a lease longer.
func toMilliseconds(d time.Duration) uint64 {
	return uint64(max(d, 0) / time.Millisecond)
}

func toCount(n int) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

// Without returns the manifest without the skipped job types, or m itself if it has none of
// them. The result is still Equal to manifests that come from the same declaration.
func (m *Manifest) Without(skipped func(jobType string) bool) *Manifest {
	if !slices.ContainsFunc(m.Types, skipped) {
		return m
	}
	rest := *m
	rest.Types, rest.Specs, rest.SkippedTypes = nil, nil, slices.Clip(rest.SkippedTypes)
	for i, jobType := range m.Types {
		if skipped(jobType) {
			rest.SkippedTypes = append(rest.SkippedTypes, jobType)
			continue
		}
		rest.Types, rest.Specs = append(rest.Types, jobType), append(rest.Specs, m.Specs[i])
	}
	return &rest
}

// Equal reports whether both manifests come from the same declaration.
func (m *Manifest) Equal(other *Manifest) bool { return proto.Equal(m.raw, other.raw) }

// IsJSON reports whether the text is a JSON value that a database can store.
func IsJSON(text []byte) bool { return utf8.Valid(text) && json.Valid(text) }
