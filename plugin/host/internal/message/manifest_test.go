package message

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

func TestAManifestIsReadAsDeclared(t *testing.T) {
	m, err := ReadManifest("mail", &handlerv1.DescribeResponse{
		Version: "v1.2 (abc)", Concurrency: 3,
		JobTypes: []*handlerv1.JobType{
			{Name: "PLAIN"},
			{
				Name: "SEND_EMAIL", Schema: []byte(`{"type":"object"}`), MaxAttempts: 7, TimeoutMs: 1500,
				Description: "Sends a letter.", Concurrency: 2,
				Retry: &handlerv1.Retry{
					Backoff: handlerv1.Retry_BACKOFF_EXPONENTIAL, BaseMs: 100, Factor: 3, CapMs: 300_000,
					JitterMin: 0.7, JitterMax: 1, AtOnceAfterTimeout: true,
				},
				Terms: &handlerv1.Terms{
					ConcurrencyKey: "/customer/id", KeyClass: "customer", ConcurrencyLimit: 2,
					OnConflict: handlerv1.Terms_ON_CONFLICT_CANCEL_NEWCOMER, FairnessKey: "/region",
				},
			},
			{Name: "SHARES_NOTHING", Terms: &handlerv1.Terms{}},
		},
	})
	require.NoError(t, err)
	require.Equal(t, 3, m.Concurrency)
	require.Equal(t, []string{"PLAIN", "SEND_EMAIL", "SHARES_NOTHING"}, m.Types)
	require.Equal(t, []job.TypeSpec{
		{Type: "PLAIN", Plugin: "mail", Version: "v1.2 (abc)"},
		{
			Type: "SEND_EMAIL", Plugin: "mail", Version: "v1.2 (abc)", Schema: []byte(`{"type":"object"}`),
			MaxAttempts: 7, Timeout: 1500 * time.Millisecond, Description: "Sends a letter.", Concurrency: 2,
			Retry: job.RetryPolicy{
				Backoff: job.Exponential, InitialDelay: 100 * time.Millisecond, Factor: 3, MaxDelay: 5 * time.Minute,
				JitterMin: 0.7, JitterMax: 1, ImmediateAfterTimeout: true,
			},
			Terms: &job.TypeTerms{
				ConcurrencyKey: "/customer/id", KeyClass: "customer", ConcurrencyLimit: 2,
				OnConflict: job.ConflictCancelNewcomer, FairnessKey: "/region",
			},
		},
		{Type: "SHARES_NOTHING", Plugin: "mail", Version: "v1.2 (abc)"},
	}, m.Specs)
}

func TestAnInvalidManifestIsRefused(t *testing.T) {
	retry := func(r *handlerv1.Retry) *handlerv1.DescribeResponse {
		return &handlerv1.DescribeResponse{JobTypes: []*handlerv1.JobType{{Name: "T", Retry: r}}}
	}
	one := func(declared *handlerv1.JobType) *handlerv1.DescribeResponse {
		return &handlerv1.DescribeResponse{JobTypes: []*handlerv1.JobType{declared}}
	}
	terms := func(change func(*handlerv1.Terms)) *handlerv1.DescribeResponse {
		declared := &handlerv1.Terms{ConcurrencyKey: "/id", KeyClass: "customer"}
		change(declared)
		return one(&handlerv1.JobType{Name: "T", Terms: declared})
	}
	for want, raw := range map[string]*handlerv1.DescribeResponse{
		"no job type":            {},
		"the version":            {Version: "a\nb", JobTypes: []*handlerv1.JobType{{Name: "T"}}},
		"concurrency 10001":      {Concurrency: 10_001, JobTypes: []*handlerv1.JobType{{Name: "T"}}},
		"declared twice":         {JobTypes: []*handlerv1.JobType{{Name: "T"}, {Name: "T"}}},
		"the name is empty":      one(&handlerv1.JobType{}),
		"longer than 200 bytes":  one(&handlerv1.JobType{Name: strings.Repeat("T", 201)}),
		"cannot be printed":      one(&handlerv1.JobType{Name: "T\x00"}),
		"schema: it is not JSON": one(&handlerv1.JobType{Name: "T", Schema: []byte(`{`)}),
		"neither an object":      one(&handlerv1.JobType{Name: "T", Schema: []byte(`[]`)}),
		"bytes are more than":    one(&handlerv1.JobType{Name: "T", Schema: []byte(`"` + strings.Repeat("s", protocol.MaxSchemaBytes) + `"`)}),
		`job type "T": schema: at /items/type: it must be one of`: one(&handlerv1.JobType{Name: "T", Schema: []byte(`{"items":{"type":"text"}}`)}),
		`"file:///etc/passwd" refers to something`:                one(&handlerv1.JobType{Name: "T", Schema: []byte(`{"$ref":"file:///etc/passwd"}`)}),
		"concurrency 10002":       one(&handlerv1.JobType{Name: "T", Concurrency: 10_002}),
		"the description is long": one(&handlerv1.JobType{Name: "T", Description: strings.Repeat("d", 1001)}),
		`the description "a\nb"`:  one(&handlerv1.JobType{Name: "T", Description: "a\nb"}),
		"max attempts":            one(&handlerv1.JobType{Name: "T", MaxAttempts: math.MaxUint32}),
		"timeout of":              one(&handlerv1.JobType{Name: "T", TimeoutMs: math.MaxUint64}),
		"no backoff is named":     retry(&handlerv1.Retry{}),
		"backoff 9 is unknown":    retry(&handlerv1.Retry{Backoff: 9}),
		"initial delay 0s is not": retry(&handlerv1.Retry{Backoff: handlerv1.Retry_BACKOFF_FIXED}),
		"base of":                 retry(&handlerv1.Retry{Backoff: handlerv1.Retry_BACKOFF_FIXED, BaseMs: math.MaxUint64}),
		"cap of":                  retry(&handlerv1.Retry{Backoff: handlerv1.Retry_BACKOFF_FIXED, BaseMs: 1, CapMs: math.MaxUint64}),
		"jitter window":           retry(&handlerv1.Retry{Backoff: handlerv1.Retry_BACKOFF_FIXED, BaseMs: 1, JitterMin: math.NaN()}),
		"factor 0 is below 1":     retry(&handlerv1.Retry{Backoff: handlerv1.Retry_BACKOFF_EXPONENTIAL, BaseMs: 1, CapMs: 1, JitterMax: 1}),
		`job type "T": terms: "id", the place of the concurrency key, must be a JSON Pointer`: terms(func(t *handlerv1.Terms) { t.ConcurrencyKey = "id" }),
		`terms: "/~2", the place of the fairness key, must be a JSON Pointer`:                 terms(func(t *handlerv1.Terms) { t.FairnessKey = "/~2" }),
		"longer than 1000 bytes":                      terms(func(t *handlerv1.Terms) { t.FairnessKey = "/" + strings.Repeat("x", 1000) }),
		`the pointer "/a\nb" to the fairness key has`: terms(func(t *handlerv1.Terms) { t.FairnessKey = "/a\nb" }),
		"the concurrency key needs a key class":       terms(func(t *handlerv1.Terms) { t.KeyClass = "" }),
		`the key class "a:b" has a colon`:             terms(func(t *handlerv1.Terms) { t.KeyClass = "a:b" }),
		`the key class "a\x00" has`:                   terms(func(t *handlerv1.Terms) { t.KeyClass = "a\x00" }),
		"the key class is longer than 100 characters": terms(func(t *handlerv1.Terms) { t.KeyClass = strings.Repeat("ü", 101) }),
		"concurrency limit 100001 is not between":     terms(func(t *handlerv1.Terms) { t.ConcurrencyLimit = 100_001 }),
		"on conflict 9 is unknown":                    terms(func(t *handlerv1.Terms) { t.OnConflict = 9 }),
		"a key class needs a concurrency key":         terms(func(t *handlerv1.Terms) { t.ConcurrencyKey = "" }),
		"a concurrency limit needs a concurrency key": terms(func(t *handlerv1.Terms) { t.ConcurrencyKey, t.KeyClass, t.ConcurrencyLimit = "", "", 1 }),
		"on conflict needs a concurrency key":         terms(func(t *handlerv1.Terms) { t.ConcurrencyKey, t.KeyClass, t.OnConflict = "", "", 1 }),
		"maximum delay 1ms is below initial delay 2":  retry(&handlerv1.Retry{Backoff: handlerv1.Retry_BACKOFF_EXPONENTIAL, BaseMs: 2, CapMs: 1, JitterMax: 1, Factor: 2}),
	} {
		_, err := ReadManifest("mail", raw)
		require.ErrorContains(t, err, want)
	}
}

func TestBothEndsAgreeOnTheSizeOfASchema(t *testing.T) {
	require.Equal(t, schema.MaxBytes, protocol.MaxSchemaBytes)
}

func TestDurationsFromPluginsDoNotOverflow(t *testing.T) {
	require.Equal(t, Longest, milliseconds(math.MaxUint64))
	require.Equal(t, 1500*time.Millisecond, milliseconds(1500))
	require.Zero(t, toMilliseconds(-time.Hour))
}
