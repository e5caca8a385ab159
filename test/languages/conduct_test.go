package languages

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTheManifestDeclaresTheHandlers(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		var declared job.TypeSpec
		for _, spec := range s.Types() {
			if spec.Type == "TEST" {
				declared = spec
			}
		}
		require.JSONEq(t, `{"type":"object","required":["do"],"properties":{"do":{"type":"string"}}}`, string(declared.Schema))
		require.Equal(t, 90*time.Second, declared.Timeout)
		require.Equal(t, 7, declared.MaxAttempts)
		require.Equal(t, job.RetryPolicy{
			Backoff: job.Exponential, InitialDelay: 2 * time.Second, Factor: 3, MaxDelay: time.Minute, JitterMin: 0.9, JitterMax: 1.1,
		}, declared.Retry)
		require.Equal(t, &job.TypeTerms{
			ConcurrencyKey: "/customer/id", KeyClass: "customer", ConcurrencyLimit: 3, OnConflict: job.ConflictCancelOldest,
			FairnessKey: "/re~1gion",
		}, declared.Terms)
		require.Equal(t, "9.9-test", declared.Version)
		require.Equal(t, 20, s.Pools()[0].Free)
	})
}

func TestTheResultIsWhatTheFunctionReturns(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		for _, value := range []string{`{"a":[1,2.5,null,true]}`, `"Grüße, 世界 \ud83e\udd80 \u2028"`, `0`, `""`, `false`} {
			outcome := s.run(`{"do":"echo","value":` + value + `}`)
			require.Equal(t, job.Success, outcome.Kind, outcome)
			require.JSONEq(t, value, string(outcome.Result))
		}
		require.Empty(t, s.run(do("echo")).Result, "no result")
		outcome := s.run(do("bad-result"))
		require.Equal(t, job.PermanentFailure, outcome.Kind)
		require.Equal(t, "bad_result", outcome.Code)
	})
}

func TestAHandlerKnowsItsJob(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		id := job.ID(uuid.Must(uuid.NewV7()))
		created := time.Date(2026, 7, 1, 12, 30, 15, 678901234, time.UTC)
		trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		const payload = `{"do": "fail", "do": "facts", "DO": "fail", "nested": {"a": 1}, "nested": {"b": 2}}`
		outcome := s.run(payload, func(a *job.Assignment) {
			a.JobID, a.Tenant, a.Fence, a.CreatedAt, a.Trace.Parent = id, "ten ant", 1<<40, created, trace
			a.Trace.Baggage, a.Checkpoint = "user=ada", json.RawMessage(`{"page":7}`)
		})
		var facts struct {
			ID, Type, Tenant, CreatedAt, RawPayload, Traceparent, Baggage string
			Attempt, MaxAttempts                                          int
			Fence                                                         int64
			Resumed                                                       map[string]int
			Payload                                                       map[string]any
		}
		require.NoError(t, json.Unmarshal(outcome.Result, &facts), "%+v", outcome)
		at, err := time.Parse(time.RFC3339, facts.CreatedAt)
		require.NoError(t, err)
		require.WithinDuration(t, created, at, time.Millisecond)
		require.Equal(t, id.String(), facts.ID)
		require.Equal(t, []string{"TEST", "ten ant", payload, trace, "user=ada"},
			[]string{facts.Type, facts.Tenant, facts.RawPayload, facts.Traceparent, facts.Baggage})
		require.Equal(t, []int{2, 3}, []int{facts.Attempt, facts.MaxAttempts})
		require.EqualValues(t, 1<<40, facts.Fence)
		require.Equal(t, 7, facts.Resumed["page"])
		require.Equal(t, map[string]any{"do": "facts", "DO": "fail", "nested": map[string]any{"b": 2.0}}, facts.Payload,
			"the case of names counts, and the last of several, as schemas see it")
	})
}

func TestErrorsDecideTheOutcome(t *testing.T) {
	after := func(d time.Duration) *time.Duration { return &d }
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		for what, want := range map[string]job.Outcome{
			"permanent":   {Kind: job.PermanentFailure, Code: "no_printer", Message: "no printer"},
			"retry-after": {Kind: job.Failure, Code: "busy", Message: "busy", RetryAfter: after(1500 * time.Millisecond)},
			"both":        {Kind: job.PermanentFailure, Code: "both", Message: "both", RetryAfter: after(2 * time.Second)},
			"snooze":      {Kind: job.Snoozed, RetryAfter: after(2500 * time.Millisecond)},
			"cancel":      {Kind: job.CancelConfirmed},
		} {
			require.Equal(t, want, s.run(do(what)), what)
		}
		s.awaitWords("not needed")

		outcome := s.run(do("error"))
		require.Equal(t, job.Failure, outcome.Kind)
		require.Regexp(t, `^\w+Error: out of paper$`, outcome.Message)
		require.Contains(t, outcome.Stack, "handler.")
		require.Equal(t, job.Failure, s.run(do("odd")).Kind)
		require.Contains(t, s.run(do("bad-text")).Message, "a\uFFFDb")
		group := s.run(do("group"))
		require.Equal(t, job.PermanentFailure, group.Kind)
		require.Equal(t, "b", group.Code)
		unknown := s.run(do("echo"), func(a *job.Assignment) { a.Type = "OTHER" })
		require.Equal(t, job.Failure, unknown.Kind)
		require.Equal(t, "unknown_type", unknown.Code)
		require.Zero(t, s.status().Restarts)
	})
}

func TestProgressAndCheckpointsArriveBeforeTheOutcome(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		_, r := s.begin(`{"do":"report","n":2000,"pad":10}`)
		require.Equal(t, job.Success, s.outcome(r).Kind)
		require.JSONEq(t, `{"n":1999,"pad":"xxxxxxxxxx"}`, r.lastCheckpoint())
		var last string
		for len(r.progress) > 0 {
			last = <-r.progress
		}
		require.JSONEq(t, `{"n":1999}`, last)
	})
}

func TestAHandlerStopsWhenItIsAsked(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		ways := map[string]func(*job.Assignment){"plain": func(*job.Assignment) {}}
		if l.name == "python" {
			ways["on the loop"] = onLoop
		}
		for name, way := range ways {
			for reason, want := range map[job.CancelReason]job.OutcomeKind{
				job.CancelRequested: job.CancelConfirmed,
				job.CancelTimeout:   job.Timeout,
				job.CancelLeaseLost: job.Released,
				job.CancelShutdown:  job.Released,
			} {
				run, r := s.begin(do("stop"), way)
				s.progress(r)
				run.Cancel(reason)
				require.Equal(t, want, s.outcome(r).Kind, "%s, %s", reason, name)
			}
		}
		s.awaitWords(`"why":"canceled"`, `"why":"timeout"`, `"why":"lease_lost"`, `"why":"shutdown"`)

		run, r := s.begin(`{"do":"stop","how":"succeed"}`)
		s.progress(r)
		run.Cancel(job.CancelRequested)
		require.JSONEq(t, `"all the same"`, string(s.outcome(r).Result))
		run, r = s.begin(`{"do":"stop","how":"permanent"}`)
		s.progress(r)
		run.Cancel(job.CancelTimeout)
		require.Equal(t, job.Timeout, s.outcome(r).Kind, "the error came after the stop")
	})
}

func TestAnAttemptTimesOutByItself(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		outcome := s.run(do("stop"), func(a *job.Assignment) { a.Timeout = 200 * time.Millisecond })
		require.Equal(t, job.Timeout, outcome.Kind)
		require.Equal(t, "timeout", outcome.Code)
		require.Equal(t, "stopped: timeout", outcome.Message)
	})
}

func TestAValueAboveItsCapIsRefusedInTheHandler(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		outcome := s.run(`{"do":"big","n":2000000}`)
		require.Equal(t, job.Outcome{
			Kind: job.PermanentFailure, Code: "result_too_large", Message: "result: 2000002 bytes of JSON are more than 1048576",
		}, outcome)
		outcome = s.run(`{"do":"report","n":1,"pad":2000000}`)
		require.Equal(t, job.PermanentFailure, outcome.Kind)
		require.Equal(t, "checkpoint_too_large", outcome.Code)
		require.Equal(t, "checkpoint: 2000016 bytes of JSON are more than 1048576", outcome.Message)
		s = supervise(t, l.config(), func(s *host.Settings) { s.Caps.Progress = 6 })
		outcome = s.run(`{"do":"report","n":1}`)
		require.Equal(t, job.Failure, outcome.Kind)
		require.Contains(t, outcome.Message, "7 bytes of JSON are more than 6")
	})
}

func TestFollowUpsComeWithASuccessOnly(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		outcome := s.run(`{"do":"submit","n":1000}`)
		require.Equal(t, job.Success, outcome.Kind, outcome.Message)
		require.Len(t, outcome.FollowUps, 1000)
		require.JSONEq(t, `{"jobType":"CHILD","payload":{"n":999},"delay":"1500ms","tags":["child"]}`, string(outcome.FollowUps[999]))
		outcome = s.run(`{"do":"submit","n":3,"fail":true}`)
		require.Equal(t, job.Failure, outcome.Kind)
		require.Empty(t, outcome.FollowUps)
		outcome = s.run(`{"do":"submit","n":1001}`)
		require.Equal(t, job.Outcome{
			Kind: job.PermanentFailure, Code: "followups_too_large", Message: "submit: 1001 follow-ups are more than 1000",
		}, outcome)
	})
}

func TestPayloadsAndResultsMayExceedTheDefaultLimitOfGRPC(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config(), func(s *host.Settings) {
			s.Caps.Checkpoint, s.Caps.Result = host.MaxCap, host.MaxCap
			s.HealthTimeout = patience // an interpreter answers no check while it reads 64 MB
		})
		const n = 9 << 20
		outcome := s.run(`{"do":"size","value":"` + strings.Repeat("x", n) + `"}`)
		require.Equal(t, "9437184", string(outcome.Result), outcome.Message)
		require.Len(t, s.run(`{"do":"big","n":9437184}`).Result, n+2)
		// As much as a message holds. More than that fails only its own job.
		outcome = s.run(`{"do":"size","value":"` + strings.Repeat("x", 63<<20) + `"}`)
		require.Equal(t, "66060288", string(outcome.Result), outcome.Message)
		require.Equal(t, "too_large", s.run(`{"do":"size","value":"`+strings.Repeat("x", 64<<20)+`"}`).Code)
		require.Equal(t, "result_too_large", s.run(`{"do":"big","n":67108864}`).Code)
		_, r := s.begin(`{"do":"report","n":1,"pad":5000000}`)
		require.Equal(t, job.Success, s.outcome(r).Kind)
		require.Greater(t, len(r.lastCheckpoint()), 5_000_000)
	})
}

func TestLogRecordsTravelWithTheirJob(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		_, r := s.begin(do("log"))
		require.Equal(t, job.Success, s.outcome(r).Kind)
		lines := r.logged()
		require.Len(t, lines, 3)
		require.Equal(t, "a line", lines[0].Message)
		require.Equal(t, job.LogInfo, lines[0].Level)
		require.JSONEq(t, `{"n":0,"text":"Grüße, 世界"}`, string(lines[0].Attributes))
		require.WithinDuration(t, time.Now(), lines[0].Time, patience)
		require.Equal(t, job.LogError, lines[1].Level)
		require.Contains(t, lines[1].Message, "a wrong")
		require.NotEmpty(t, lines[1].Attributes, "even of what JSON cannot express")
		require.Equal(t, job.LogWarn, lines[2].Level)
		s.awaitWords(`"job_id"`)

		// More than the outbox keeps: the last ones arrive, with the number of the others.
		const many = 20_000
		_, r = s.begin(`{"do":"log","n":20000}`)
		require.Equal(t, job.Success, s.outcome(r).Kind)
		come, dropped := 0, 0
		for _, line := range r.logged() {
			dropped += line.Dropped
			if line.Dropped == 0 {
				come++
			}
		}
		require.Equal(t, many+2, come+dropped)
		require.Positive(t, dropped)
		require.Zero(t, s.status().Restarts)
	})
}

func TestOutputDoesNotDisturbTheProtocol(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config("noise"))
		require.Equal(t, job.Success, s.run(do("noise")).Kind)
		require.Equal(t, job.Success, s.run(do("echo")).Kind)
		s.awaitWords("loading | 1 | 2", "no end here", `"line":"printed"`, "written past the language", "by a child")
		require.Zero(t, s.status().Restarts)
	})
}

func TestAProcessIsHealthyWhenEverySlotIsBusy(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		var reports []*report
		for i := range 20 {
			payload, way := `{"do":"sleep","seconds":2}`, func(*job.Assignment) {}
			if l.name == "python" && i%2 == 0 {
				payload, way = `{"do":"block","seconds":0.2}`, onLoop
			}
			_, r := s.begin(payload, way)
			reports = append(reports, r)
		}
		require.Zero(t, s.Pools()[0].Free, "the process is full")
		for _, r := range reports {
			require.Equal(t, job.Success, s.outcome(r).Kind)
		}
		require.Zero(t, s.status().Restarts)
	})
}

func TestAProcessIgnoresTheSignalsOfATerminal(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		_, r := s.begin(`{"do":"sleep","seconds":0.5}`)
		require.NoError(t, syscall.Kill(s.pid(), syscall.SIGINT))
		require.NoError(t, syscall.Kill(s.pid(), syscall.SIGTERM))
		require.Equal(t, job.Success, s.outcome(r).Kind)
	})
}

func TestAnErrorOutsideOfAHandler(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		want := job.Crash
		if l.name == "python" { // where a failing thread does not end the process
			want = job.Success
		}
		require.Equal(t, want, s.run(do("stray")).Kind)
		s.awaitWords("stray")
		require.Equal(t, job.Success, s.run(do("echo")).Kind)
	})
}

func TestTheEnvironmentHasOnlyWhatIsConfigured(t *testing.T) {
	t.Setenv("SECRET", "canary")
	forEach(t, func(t *testing.T, l interpreted) {
		result := string(supervise(t, l.config()).run(do("environment")).Result)
		require.Contains(t, result, `"GIVEN":"yes"`)
		require.NotContains(t, result, "canary")
	})
}
