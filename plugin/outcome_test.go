package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

var errPlain = errors.New("no such printer")

func failed(f *handlerv1.Failed) *handlerv1.Outcome {
	return &handlerv1.Outcome{Result: &handlerv1.Outcome_Failed{Failed: f}}
}

func succeeded(result string) *handlerv1.Outcome {
	s := &handlerv1.Succeeded{}
	if result != "" {
		s.Result = []byte(result)
	}
	return &handlerv1.Outcome{Result: &handlerv1.Outcome_Succeeded{Succeeded: s}}
}

func canceled() *handlerv1.Outcome {
	return &handlerv1.Outcome{Result: &handlerv1.Outcome_Canceled{Canceled: &handlerv1.Canceled{}}}
}

func TestWhatAHandlerReturnsBecomesAnOutcome(t *testing.T) {
	cases := map[string]struct {
		err  error
		want *handlerv1.Outcome
	}{
		"nothing":          {nil, succeeded("")},
		"an error":         {errPlain, failed(&handlerv1.Failed{Message: "no such printer"})},
		"a permanent one":  {Permanent(errPlain), failed(&handlerv1.Failed{Permanent: true, Message: "no such printer"})},
		"one with a code":  {Code(errPlain, "printer"), failed(&handlerv1.Failed{Code: "printer", Message: "no such printer"})},
		"one with a delay": {RetryAfter(errPlain, time.Minute), failed(&handlerv1.Failed{RetryAfterMs: new(uint64(60_000)), Message: "no such printer"})},
		"no delay at all":  {RetryAfter(errPlain, 0), failed(&handlerv1.Failed{RetryAfterMs: new(uint64(0)), Message: "no such printer"})},
		"a negative delay": {RetryAfter(errPlain, -time.Second), failed(&handlerv1.Failed{RetryAfterMs: new(uint64(0)), Message: "no such printer"})},
		"all of it, wrapped": {
			fmt.Errorf("print: %w", Permanent(fmt.Errorf("page 2: %w", Code(RetryAfter(errPlain, time.Second), "printer")))),
			failed(&handlerv1.Failed{Permanent: true, Code: "printer", RetryAfterMs: new(uint64(1000)), Message: "print: page 2: no such printer"}),
		},
		"the outer code": {Code(Code(errPlain, "inner"), "outer"), failed(&handlerv1.Failed{Code: "outer", Message: "no such printer"})},
		"joined errors":  {errors.Join(errors.New("a"), Permanent(errors.New("b"))), failed(&handlerv1.Failed{Permanent: true, Message: "a\nb"})},
		"wishes of joined errors": {
			errors.Join(Code(errors.New("a"), "first"), fmt.Errorf("x: %w", RetryAfter(Permanent(Code(errors.New("b"), "second")), time.Second))),
			failed(&handlerv1.Failed{Permanent: true, Code: "first", RetryAfterMs: new(uint64(1000)), Message: "a\nx: b"}),
		},
		"a snooze among errors": {
			errors.Join(errPlain, Snooze(time.Second)),
			&handlerv1.Outcome{Result: &handlerv1.Outcome_Snoozed{Snoozed: &handlerv1.Snoozed{RetryAfterMs: 1000}}},
		},
		"permanent nil":              {Permanent(nil), succeeded("")},
		"code of nil":                {Code(nil, "c"), succeeded("")},
		"delay of nil":               {RetryAfter(nil, time.Hour), succeeded("")},
		"a snooze":                   {Snooze(90 * time.Second), &handlerv1.Outcome{Result: &handlerv1.Outcome_Snoozed{Snoozed: &handlerv1.Snoozed{RetryAfterMs: 90_000}}}},
		"a wrapped snooze":           {fmt.Errorf("closed: %w", Snooze(time.Second)), &handlerv1.Outcome{Result: &handlerv1.Outcome_Snoozed{Snoozed: &handlerv1.Snoozed{RetryAfterMs: 1000}}}},
		"a snooze with another wish": {RetryAfter(Snooze(time.Second), time.Minute), &handlerv1.Outcome{Result: &handlerv1.Outcome_Snoozed{Snoozed: &handlerv1.Snoozed{RetryAfterMs: 60_000}}}},
		"a cancel":                   {Cancel(errPlain), canceled()},
		"a wrapped cancel":           {fmt.Errorf("gone: %w", Cancel(nil)), canceled()},
		"text that is not text": {
			errors.New("a\x00b\xffc"), failed(&handlerv1.Failed{Message: "a\uFFFDb\uFFFDc"}),
		},
		"a code that is not text": {Code(errPlain, "\xff\x00"), failed(&handlerv1.Failed{Code: "\uFFFD\uFFFD", Message: "no such printer"})},
	}
	var returned error
	o := serving(t, Handle("RETURN", func(context.Context, Job[any]) error { return returned }))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			returned = c.err
			got := o.run("RETURN", `null`)
			c.want.Handle = got.GetHandle()
			require.True(t, proto.Equal(c.want, got), "got %v", got)
		})
	}
}

func TestErrorsKeepTheirCause(t *testing.T) {
	for _, err := range []error{Permanent(errPlain), RetryAfter(errPlain, 1), Code(errPlain, "c"), Cancel(errPlain)} {
		require.ErrorIs(t, fmt.Errorf("wrapped: %w", err), errPlain)
	}
}

func TestALongErrorIsCutAtACharacter(t *testing.T) {
	o := serving(t, Handle("LONG", func(context.Context, Job[any]) error {
		return Code(errors.New("x"+strings.Repeat("é", 1<<20)), strings.Repeat("é", 1000))
	}))
	got := o.run("LONG", `null`).GetFailed()
	require.Len(t, got.GetMessage(), maxMessage-1)
	require.Len(t, got.GetCode(), maxCode)
	require.True(t, utf8.ValidString(got.GetMessage()))
}

type hopeless struct{ text string }

func (h *hopeless) Error() string { return h.text }
func (h *hopeless) Unwrap() error { return errors.New(h.text) }

func TestAHandlerThatBlowsUpFailsItsAttemptAlone(t *testing.T) {
	var nobody *hopeless
	o := serving(t,
		Handle("PANIC", func(context.Context, Job[any]) error { panic(errPlain) }),
		Handle("PANIC_NIL", func(context.Context, Job[any]) error { panic(any(nil)) }),
		Handle("GOEXIT", func(context.Context, Job[any]) error { runtime.Goexit(); return nil }),
		Handle("TYPED_NIL", func(context.Context, Job[any]) error { return nobody }),
		Handle("FINE", func(context.Context, Job[any]) error { return nil }),
	)
	got := o.run("PANIC", `null`).GetFailed()
	require.Equal(t, "panic", got.GetCode())
	require.Equal(t, "panic: no such printer", got.GetMessage())
	require.Contains(t, got.GetStack(), "outcome_test.go")
	require.False(t, got.GetPermanent(), "another attempt may be luckier")

	require.Equal(t, "panic", o.run("PANIC_NIL", `null`).GetFailed().GetCode())
	require.Contains(t, o.run("GOEXIT", `null`).GetFailed().GetMessage(), "goroutine")
	require.NotNil(t, o.run("TYPED_NIL", `null`).GetFailed())
	require.NotNil(t, o.run("FINE", `null`).GetSucceeded(), "the process lives")
}

func TestAResultIsStoredAsJSON(t *testing.T) {
	type answer struct {
		Sum int `json:"sum"`
	}
	o := serving(t,
		HandleResult("STRUCT", func(context.Context, Job[any]) (answer, error) { return answer{3}, nil }),
		HandleResult("RAW", func(_ context.Context, j Job[json.RawMessage]) (json.RawMessage, error) { return j.Args, nil }),
		HandleResult("NAN", func(context.Context, Job[any]) (float64, error) { return math.NaN(), nil }),
		HandleResult("CHANNEL", func(context.Context, Job[any]) (chan int, error) { return nil, nil }),
		HandleResult("NOT_UTF8", func(context.Context, Job[any]) (json.RawMessage, error) { return json.RawMessage("\"\xff\""), nil }),
		HandleResult("TOO_LARGE", func(context.Context, Job[any]) (string, error) { return strings.Repeat("x", maxValue), nil }),
		HandleResult("FITS", func(context.Context, Job[any]) (string, error) { return strings.Repeat("x", maxValue-2), nil }),
		HandleResult("ERROR", func(context.Context, Job[any]) (answer, error) { return answer{3}, errPlain }),
	)
	require.JSONEq(t, `{"sum":3}`, string(o.run("STRUCT", `null`).GetSucceeded().GetResult()))
	odd := `{"text":"\u0000 and \ud800","n":1.000000000000000000001}`
	require.Equal(t, odd, string(o.run("RAW", odd).GetSucceeded().GetResult()))
	for jobType, code := range map[string]string{
		"NAN": "bad_result", "CHANNEL": "bad_result", "NOT_UTF8": "bad_result", "TOO_LARGE": "result_too_large",
	} {
		got := o.run(jobType, `null`).GetFailed()
		require.Equal(t, code, got.GetCode(), jobType)
		require.True(t, got.GetPermanent(), "the work is done; another attempt would do it again")
	}
	require.Len(t, o.run("FITS", `null`).GetSucceeded().GetResult(), maxValue)
	require.Equal(t, "no such printer", o.run("ERROR", `null`).GetFailed().GetMessage())
}

func TestAPayloadThatDoesNotFitFailsForGood(t *testing.T) {
	type args struct {
		N int `json:"n"`
	}
	called := false
	o := serving(t, Handle("N", func(context.Context, Job[args]) error { called = true; return nil }))
	for _, payload := range []string{`{"n":"one"}`, `[]`, `{"n":1`, ``, `"text"`, `"{\"n\":\"one\"}"`} {
		got := o.run("N", payload).GetFailed()
		require.Equal(t, "bad_payload", got.GetCode(), payload)
		require.True(t, got.GetPermanent())
	}
	require.False(t, called)
}

func TestAnUnknownTypeMayBeKnownToAnotherProcess(t *testing.T) {
	o := serving(t, Handle("KNOWN", func(context.Context, Job[any]) error { return nil }))
	got := o.run("UNKNOWN", `null`).GetFailed()
	require.Equal(t, "unknown_type", got.GetCode())
	require.False(t, got.GetPermanent())
}
