package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// taking is what an orchestrator says that takes follow-ups.
var taking = &handlerv1.DescribeRequest{MaxFollowUps: 3, MaxFollowUpBytes: 1000}

// submitting runs a handler and returns its outcome.
func submitting(t *testing.T, said *handlerv1.DescribeRequest, do func(context.Context) error) *handlerv1.Outcome {
	t.Helper()
	o := describing(t, said, Handle("PARENT", func(ctx context.Context, _ Job[any]) error { return do(ctx) }))
	return o.run("PARENT", `null`)
}

func TestFollowUpsAreSentWithTheSuccess(t *testing.T) {
	ended := submitting(t, taking, func(ctx context.Context) error {
		err := Submit(ctx, FollowUp{Type: "A"}, FollowUp{Type: "B", Payload: map[string]int{"n": 1}})
		return errors.Join(err, Submit(ctx, FollowUp{Type: "C", Payload: json.RawMessage(`[1.0]`)}))
	})
	var sent []string
	for _, one := range ended.GetSucceeded().GetFollowUps() {
		sent = append(sent, string(one))
	}
	require.Equal(t, []string{
		`{"jobType":"A","payload":null}`, `{"jobType":"B","payload":{"n":1}}`, `{"jobType":"C","payload":[1.0]}`,
	}, sent)
}

func TestAFollowUpHasEverythingThatASubmissionCanHave(t *testing.T) {
	at := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	encoded, err := (&FollowUp{
		Type: "A", Payload: point{}, Key: "k", Priority: -3, RunAt: at, Delay: 90 * time.Second, Hold: true, MaxAttempts: 2,
		Timeout: time.Minute, Tags: []string{"t"}, ConcurrencyKey: "c:1", ConcurrencyLimit: 4, OnConflict: ConflictQueue, FairnessKey: "f",
		ExpiresAt: at, TTL: time.Hour, UniqueFor: time.Hour, UniqueWhileOpen: true, UniqueBy: []string{"/x"},
		CallbackURL: "https://example.com/hook",
	}).encode()
	require.NoError(t, err)
	require.JSONEq(t, `{"jobType": "A", "payload": {"x": 0, "y": 0}, "idempotencyKey": "k", "priority": -3,
		"runAt": "2030-01-31T12:00:00Z", "delay": "1m30s", "hold": true, "maxAttempts": 2, "timeout": "1m0s", "tags": ["t"],
		"concurrencyKey": "c:1", "concurrencyLimit": 4, "onConflict": "queue", "fairnessKey": "f",
		"expiresAt": "2030-01-31T12:00:00Z", "ttl": "1h0m0s", "uniqueFor": "1h0m0s", "uniqueWhile": "open", "uniqueBy": ["/x"],
		"callbackUrl": "https://example.com/hook"}`, string(encoded))
}

func TestOnlyASuccessHasFollowUps(t *testing.T) {
	for name, end := range map[string]func() error{
		"failure":   func() error { return errPlain },
		"permanent": func() error { return Permanent(errPlain) },
		"snooze":    func() error { return Snooze(time.Minute) },
		"cancel":    func() error { return Cancel(nil) },
		"panic":     func() error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			ended := submitting(t, taking, func(ctx context.Context) error {
				require.NoError(t, Submit(ctx, FollowUp{Type: "A"}))
				return end()
			})
			require.Nil(t, ended.GetSucceeded())
			require.NotContains(t, fmt.Sprint(ended), "jobType")
		})
	}
}

func TestAFollowUpThatCannotBeSentIsRefusedAtOnce(t *testing.T) {
	many := make([]FollowUp, 3)
	for i := range many {
		many[i].Type = "A"
	}
	for name, c := range map[string]struct {
		jobs []FollowUp
		want string
		code string
	}{
		"no type":   {[]FollowUp{{}}, "no type", ""},
		"no JSON":   {[]FollowUp{{Type: "B", Payload: make(chan int)}}, "submit B: payload: json: unsupported type", ""},
		"too many":  {many, "submit: 4 follow-ups are more than 3", codeFollowUpsTooLarge},
		"too large": {[]FollowUp{{Type: "B", Payload: strings.Repeat("x", 1000)}}, "bytes of JSON are more than 1000", codeFollowUpsTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			ended := submitting(t, taking, func(ctx context.Context) error {
				require.NoError(t, Submit(ctx, FollowUp{Type: "A"}))
				err := Submit(ctx, c.jobs...)
				require.ErrorContains(t, err, c.want)
				require.Equal(t, Verdict{Permanent: c.code != "", Code: c.code}, VerdictOf(err))
				return nil
			})
			require.Len(t, ended.GetSucceeded().GetFollowUps(), 1, "what was submitted before stays")
		})
	}
}

func TestAnOrchestratorThatTakesNoFollowUpsGetsNone(t *testing.T) {
	for name, said := range map[string]*handlerv1.DescribeRequest{"says nothing": nil, "is older": {MaxResultBytes: 1000}} {
		t.Run(name, func(t *testing.T) {
			ended := submitting(t, said, func(ctx context.Context) error { return Submit(ctx, FollowUp{Type: "A"}) })
			require.Equal(t, "submit: the orchestrator is too old to accept follow-ups", ended.GetFailed().GetMessage())
			require.False(t, ended.GetFailed().GetPermanent(), "a newer one may attempt the job next")
		})
	}
}

func TestNobodySubmitsOutsideOfAnAttempt(t *testing.T) {
	require.ErrorContains(t, Submit(t.Context(), FollowUp{Type: "A"}), "does not belong to an attempt")
	var left context.Context
	submitting(t, taking, func(ctx context.Context) error {
		left = ctx
		return nil
	})
	require.ErrorIs(t, Submit(left, FollowUp{Type: "A"}), errEnded)
}
