package plugin

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

func nothing(context.Context, Job[any]) error { return nil }

func TestTheManifestSaysWhatWasDeclared(t *testing.T) {
	o := serving(t,
		Concurrency(8), Version("1.2"),
		Handle("PLAIN", nothing),
		Handle("FULL", nothing, Timeout(90*time.Second), MaxAttempts(7), WithSchema(json.RawMessage(`{"type":"object"}`)),
			Description("Has everything."), Concurrency(2),
			Retry(ExponentialBackoff(time.Second, 3, time.Minute)),
			Terms{ConcurrencyKey: "/customer/id", KeyClass: "customer", ConcurrencyLimit: 3, OnConflict: ConflictCancelOldest, FairnessKey: "/re~1gi~0on"}),
		Handle("FAIR", nothing, Terms{FairnessKey: "/region"}),
		Handle("FIXED", nothing, Retry(FixedBackoff(time.Second))),
		Handle("AT_ONCE", nothing, Retry(ImmediateRetry())),
		Handle("AFTER_TIMEOUT", nothing, Retry(RetryPolicy{Backoff: Fixed, InitialDelay: time.Second, JitterMin: 1, JitterMax: 1, ImmediateAfterTimeout: true})),
		Handle("POINT", func(context.Context, Job[point]) error { return nil }),
	)
	got, err := o.client.Describe(t.Context(), &handlerv1.DescribeRequest{})
	require.NoError(t, err)
	pointSchema := got.GetJobTypes()[6].GetSchema()
	require.Contains(t, string(pointSchema), `"required":["x","y"]`)
	want := &handlerv1.DescribeResponse{
		Version: "1.2", Concurrency: 8,
		JobTypes: []*handlerv1.JobType{
			{Name: "AFTER_TIMEOUT", Retry: &handlerv1.Retry{Backoff: handlerv1.Retry_BACKOFF_FIXED, BaseMs: 1000, JitterMin: 1, JitterMax: 1, AtOnceAfterTimeout: true}},
			{Name: "AT_ONCE", Retry: &handlerv1.Retry{Backoff: handlerv1.Retry_BACKOFF_IMMEDIATE}},
			{Name: "FAIR", Terms: &handlerv1.Terms{FairnessKey: "/region"}},
			{Name: "FIXED", Retry: &handlerv1.Retry{Backoff: handlerv1.Retry_BACKOFF_FIXED, BaseMs: 1000, JitterMin: 0.9, JitterMax: 1.1}},
			{
				Name: "FULL", TimeoutMs: 90_000, MaxAttempts: 7, Schema: []byte(`{"type":"object"}`),
				Description: "Has everything.", Concurrency: 2,
				Retry: &handlerv1.Retry{Backoff: handlerv1.Retry_BACKOFF_EXPONENTIAL, BaseMs: 1000, Factor: 3, CapMs: 60_000, JitterMin: 0.9, JitterMax: 1.1},
				Terms: &handlerv1.Terms{
					ConcurrencyKey: "/customer/id", KeyClass: "customer", ConcurrencyLimit: 3,
					OnConflict: handlerv1.Terms_ON_CONFLICT_CANCEL_OLDEST, FairnessKey: "/re~1gi~0on",
				},
			},
			{Name: "PLAIN"},
			{Name: "POINT", Schema: pointSchema},
		},
	}
	require.True(t, proto.Equal(want, got), "got %v", got)
}

func TestABinaryWithoutAVersionHasTheBuilds(t *testing.T) {
	b, err := assemble([]Part{Handle("A", nothing)})
	require.NoError(t, err)
	require.NotEmpty(t, b.manifest().GetVersion())
}

func TestWhatTheOrchestratorWouldRefuseIsRefusedAtOnce(t *testing.T) {
	exponential := ExponentialBackoff(time.Second, 2, time.Minute)
	change := func(change func(*RetryPolicy)) Option {
		p := exponential
		change(&p)
		return Retry(p)
	}
	share := func(t Terms) []Part { return []Part{Handle("A", nothing, t)} }
	cases := map[string]struct {
		parts []Part
		want  string
	}{
		"nothing":           {nil, "there is no handler to serve"},
		"a type twice":      {[]Part{Handle("A", nothing), Handle("A", nothing)}, `job type "A" has two handlers`},
		"no name":           {[]Part{Handle("", nothing)}, "the name is empty"},
		"a long name":       {[]Part{Handle(strings.Repeat("A", 201), nothing)}, "longer than 200"},
		"an odd name":       {[]Part{Handle("A\nB", nothing)}, "cannot be printed"},
		"a name in Latin-1": {[]Part{Handle("\xfc", nothing)}, "cannot be printed"},
		"an empty handler":  {[]Part{Handler{}}, "not made by Handle"},
		"no function":       {[]Part{Handle[any]("A", nil)}, `job type "A": the function is nil`},
		"no function, too":  {[]Part{HandleResult[any, any]("A", nil)}, "the function is nil"},
		"no version":        {[]Part{Handle("A", nothing), Version("")}, "version"},
		"no concurrency":    {[]Part{Handle("A", nothing), Concurrency(0)}, "concurrency 0"},
		"all concurrency":   {[]Part{Handle("A", nothing), Concurrency(10_001)}, "concurrency 10001"},
		"no time":           {[]Part{Handle("A", nothing, Timeout(0))}, `job type "A": timeout 0s`},
		"too much time":     {[]Part{Handle("A", nothing, Timeout(math.MaxInt64))}, "timeout"},
		"hardly any time":   {[]Part{Handle("A", nothing, Timeout(time.Microsecond))}, "timeout 1µs"},
		"the first of two":  {[]Part{Handle("A", nothing, MaxAttempts(0), Timeout(0))}, "max attempts 0"},
		"a huge schema":     {[]Part{Handle("A", nothing, WithSchema(json.RawMessage(`{"title":"`+strings.Repeat("x", protocol.MaxSchemaBytes)+`"}`)))}, "schema is longer"},
		"no attempt":        {[]Part{Handle("A", nothing, MaxAttempts(0))}, "max attempts 0"},
		"odd schema":        {[]Part{Handle("A", nothing, WithSchema(json.RawMessage(`{`)))}, "schema: unexpected end"},
		"wrong schema":      {[]Part{Handle("A", nothing, WithSchema(json.RawMessage(`[]`)))}, "neither an object nor a boolean"},
		"no payload":        {[]Part{Handle("A", func(context.Context, Job[chan int]) error { return nil })}, "schema of chan int"},
		"no description":    {[]Part{Handle("A", nothing, Description(""))}, "description is empty"},
		"two lines":         {[]Part{Handle("A", nothing, Description("a\nb"))}, "not one line"},
		"a long one":        {[]Part{Handle("A", nothing, Description(strings.Repeat("d", 1001)))}, "longer than 1000"},
		"a type with none":  {[]Part{Handle("A", nothing, Concurrency(0))}, `job type "A": concurrency 0`},
		"no policy":         {[]Part{Handle("A", nothing, Retry(RetryPolicy{}))}, `retry: backoff "" is not one of`},
		"no delay":          {[]Part{Handle("A", nothing, Retry(FixedBackoff(0)))}, "retry: initial delay 0s"},
		"shrinking":         {[]Part{Handle("A", nothing, change(func(p *RetryPolicy) { p.Factor = 0.5 }))}, "factor 0.5"},
		"no number":         {[]Part{Handle("A", nothing, change(func(p *RetryPolicy) { p.Factor = math.NaN() }))}, "factor NaN"},
		"max below initial": {[]Part{Handle("A", nothing, change(func(p *RetryPolicy) { p.MaxDelay = 1 }))}, "maximum delay 1ns"},
		"backward jitter":   {[]Part{Handle("A", nothing, change(func(p *RetryPolicy) { p.JitterMin = 2 }))}, "jitter window 2..1.1"},
		"no terms":          {share(Terms{}), `job type "A": terms: they name no key`},
		"no class":          {share(Terms{ConcurrencyKey: "/id"}), `terms: key class ""`},
		"an odd class":      {share(Terms{ConcurrencyKey: "/id", KeyClass: "a:b"}), `key class "a:b"`},
		"a long class":      {share(Terms{ConcurrencyKey: "/id", KeyClass: strings.Repeat("ü", 101)}), "longer than 100"},
		"no pointer":        {share(Terms{ConcurrencyKey: "id", KeyClass: "a"}), `concurrency key "id" is no JSON Pointer`},
		"a bad escape":      {share(Terms{FairnessKey: "/~2"}), `fairness key "/~2" is no JSON Pointer`},
		"a class alone":     {share(Terms{KeyClass: "a", FairnessKey: "/id"}), "need a concurrency key"},
		"a limit alone":     {share(Terms{ConcurrencyLimit: 1}), "need a concurrency key"},
		"a negative limit":  {share(Terms{ConcurrencyKey: "/id", KeyClass: "a", ConcurrencyLimit: -1}), "concurrency limit -1"},
		"a high limit":      {share(Terms{ConcurrencyKey: "/id", KeyClass: "a", ConcurrencyLimit: 100_001}), "concurrency limit 100001"},
		"a new conflict":    {share(Terms{ConcurrencyKey: "/id", KeyClass: "a", OnConflict: "fight"}), `on conflict "fight"`},
		"endless jitter":    {[]Part{Handle("A", nothing, change(func(p *RetryPolicy) { p.JitterMax = math.Inf(1) }))}, "jitter window"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := assemble(c.parts)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestASchemaOfOnesOwnReplacesOneThatCannotBeMade(t *testing.T) {
	_, err := assemble([]Part{Handle("A", func(context.Context, Job[chan int]) error { return nil }, WithSchema(json.RawMessage(`true`)))})
	require.NoError(t, err)
}
