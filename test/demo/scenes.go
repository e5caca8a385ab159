package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

type scene struct {
	title string
	play  func(context.Context, *stage, *story) error
}

var scenes = []scene{
	{"An orchestrator starts, with its own PostgreSQL", start},
	{"An e-mail is sent", sendMail},
	{"A job that takes a while", sleep},
	{"A job that always fails: retries, dead letter, requeue", fail},
	{"The same request twice makes one job", repeat},
	{"How soon a job starts on an idle queue", latency},
	{"The plugin process is killed during a job", killHandler},
	{"The orchestrator is killed during jobs", killOrchestrator},
	{"A clean shutdown", shutDown},
}

func start(ctx context.Context, s *stage, story *story) error {
	took, err := s.Start(ctx)
	if err != nil {
		return err
	}
	story.say("ready on http://%s after %s", s.Address, short(took))
	handler, err := s.handler()
	if err != nil {
		return err
	}
	story.say("its handlers run in a separate process: orchestrator %d, plugin process %d",
		s.PID(), handler.PID)
	return nil
}

func sendMail(ctx context.Context, s *stage, story *story) error {
	id, err := s.Submit(ctx, rig.Submission{JobType: "SEND_EMAIL", Payload: map[string]any{
		"to": "ada@example.com", "subject": "Welcome", "text": "Hold fast.",
	}})
	if err != nil {
		return err
	}
	story.say("accepted as %s", id)
	job, err := s.Await(ctx, id, "COMPLETED")
	if err != nil {
		return err
	}
	select {
	case message := <-s.mailbox.Received:
		story.say("the mail server accepted %q for %s; %s", message.Subject, message.To, job.Status)
		return nil
	default:
		return errors.New("the job is done, but the mail server has no mail")
	}
}

func sleep(ctx context.Context, s *stage, story *story) error {
	id, err := s.Submit(ctx, rig.Submission{JobType: "SLEEP_JOB", Payload: map[string]any{"sleepSeconds": 1}})
	if err != nil {
		return err
	}
	if _, err := s.Await(ctx, id, "RUNNING"); err != nil {
		return err
	}
	story.say("RUNNING")
	job, err := s.Await(ctx, id, "COMPLETED")
	if err != nil {
		return err
	}
	story.say("COMPLETED after %s", short(job.FinishedAt.Sub(job.StartedAt)))
	return nil
}

func fail(ctx context.Context, s *stage, story *story) error {
	id, err := s.Submit(ctx, rig.Submission{
		JobType: "FAIL_JOB", MaxAttempts: 3, Payload: map[string]any{"message": "no such printer"},
	})
	if err != nil {
		return err
	}
	if err := deadLettered(ctx, s, story, id, 3); err != nil {
		return err
	}
	var letters struct {
		DeadLetters []struct {
			JobID string `json:"jobId"`
			Error string `json:"lastError"`
		} `json:"deadLetters"`
	}
	if err := s.Call(ctx, http.MethodGet, "/dead-letter", nil, http.StatusOK, &letters); err != nil {
		return err
	}
	if len(letters.DeadLetters) != 1 || letters.DeadLetters[0].JobID != id {
		return fmt.Errorf("the dead letters are %v, not just this job", letters.DeadLetters)
	}
	story.say("the dead letter says: %s", letters.DeadLetters[0].Error)
	if err := s.Call(ctx, http.MethodPost, "/jobs/"+id+"/requeue", nil, http.StatusOK, nil); err != nil {
		return err
	}
	story.say("requeued, with all its attempts again")
	return deadLettered(ctx, s, story, id, 6)
}

// deadLettered waits until the job is dead after so many attempts in all.
func deadLettered(ctx context.Context, s *stage, story *story, id string, attempts int) error {
	if _, err := s.Await(ctx, id, "FAILED"); err != nil {
		return err
	}
	ended, err := s.attempts(ctx, id)
	if err != nil {
		return err
	}
	if len(ended) != attempts {
		return fmt.Errorf("there are %d attempts, not %d", len(ended), attempts)
	}
	for _, attempt := range ended[len(ended)-3:] {
		story.say("attempt %d: %s: %s", attempt.Number, attempt.Outcome, attempt.Error)
	}
	story.say("FAILED, and now a dead letter")
	return nil
}

func repeat(ctx context.Context, s *stage, story *story) error {
	request := rig.Submission{
		JobType: "SLEEP_JOB", Payload: map[string]any{"sleepSeconds": 1}, IdempotencyKey: "order-4711",
	}
	first, err := s.Submit(ctx, request)
	if err != nil {
		return err
	}
	second, err := s.Submit(ctx, request)
	if err != nil {
		return err
	}
	if first != second {
		return fmt.Errorf("two jobs were made: %s and %s", first, second)
	}
	story.say("both answers name %s", first)
	request.Payload = map[string]any{"sleepSeconds": 2}
	err = s.Call(ctx, http.MethodPost, "/jobs", request, http.StatusUnprocessableEntity, nil)
	if err != nil {
		return err
	}
	story.say("the same key with another payload is rejected")
	return nil
}

func latency(ctx context.Context, s *stage, story *story) error {
	const jobs = 100
	var waits []time.Duration
	for i := range jobs {
		path := fmt.Sprintf("/%d", i)
		if _, err := s.Submit(ctx, rig.Submission{JobType: "HTTP_REQUEST", Payload: map[string]any{
			"method": "GET", "url": s.web.URL + path,
		}}); err != nil {
			return err
		}
		answered := time.Now()
		select {
		case got := <-s.calls:
			if got.path != path {
				return fmt.Errorf("the handler called %s, not %s", got.path, path)
			}
			waits = append(waits, max(got.at.Sub(answered), 0))
		case <-ctx.Done():
			return errors.New("the handler was not started")
		}
	}
	slices.Sort(waits)
	story.say("from the answer to POST until the handler's own request arrives, for %d jobs one by one:", jobs)
	story.say("p50 %s, p95 %s, longest %s", short(waits[jobs/2]), short(waits[jobs*95/100]), short(waits[jobs-1]))
	return nil
}

func killHandler(ctx context.Context, s *stage, story *story) error {
	id, err := s.Submit(ctx, rig.Submission{JobType: "SLEEP_JOB", Payload: map[string]any{"sleepSeconds": 3}})
	if err != nil {
		return err
	}
	job, err := s.AwaitThat(ctx, id, func(job rig.Job) bool { return len(job.Progress) > 0 })
	if err != nil {
		return err
	}
	handler, err := s.handler()
	if err != nil {
		return err
	}
	s.Look()
	if err := handler.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	killed := time.Now()
	story.say("progress %s; plugin process %d killed with SIGKILL", job.Progress, handler.PID)
	if job, err = s.Await(ctx, id, "COMPLETED"); err != nil {
		return err
	}
	ended, err := s.attempts(ctx, id)
	if err != nil {
		return err
	}
	if len(ended) != 2 {
		return fmt.Errorf("there are %d attempts, not 2", len(ended))
	}
	next, err := s.handler()
	if err != nil {
		return err
	}
	if job.FinishedAt.Before(killed.Add(leaseFor)) {
		return errors.New("the job completed within the first attempt's lease; the demo needs it to take longer")
	}
	story.say("attempt 1: %s: %s", ended[0].Outcome, ended[0].Error)
	story.say("it ended %s after the kill, without waiting for the end of its lease of %s",
		short(ended[0].EndedAt.Sub(killed)), short(leaseFor))
	story.say("the plugin is up again as process %d; attempt 2: %s, from the checkpoint", next.PID, ended[1].Outcome)
	story.say("COMPLETED %s after the kill, later than the end of the first lease", short(job.FinishedAt.Sub(killed)))
	return nil
}

func killOrchestrator(ctx context.Context, s *stage, story *story) error {
	const running, waiting = 10, 20
	ids := make([]string, 0, running+waiting)
	for range running {
		id, err := s.Submit(ctx, rig.Submission{
			JobType: "SLEEP_JOB", MaxAttempts: 1, Payload: map[string]any{"sleepSeconds": 2},
		})
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if _, err := s.Await(ctx, id, "RUNNING"); err != nil {
			return err
		}
	}
	for range waiting {
		id, err := s.Submit(ctx, rig.Submission{
			JobType: "SLEEP_JOB", Payload: map[string]any{"sleepSeconds": 1},
		})
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if err := s.Kill(); err != nil {
		return err
	}
	killed := time.Now()
	story.say("%d jobs were running, %d more accepted; the orchestrator was killed with SIGKILL", running, waiting)
	gone, err := s.NoneLeft(ctx)
	if err != nil {
		return err
	}
	story.say("no orphans: all its %d processes were gone %s later", gone, short(time.Since(killed)))
	took, err := s.Start(ctx)
	if err != nil {
		return err
	}
	story.say("started again: ready after %s", short(took))
	for _, id := range ids {
		if _, err := s.Await(ctx, id, "COMPLETED"); err != nil {
			return err
		}
	}
	interrupted, err := s.attempts(ctx, ids[0])
	if err != nil {
		return err
	}
	var outcomes []string
	for _, attempt := range interrupted {
		outcomes = append(outcomes, string(attempt.Outcome))
	}
	story.say("all %d jobs COMPLETED, none lost; attempts of the first: %s (an interruption is not charged)",
		len(ids), strings.Join(outcomes, ", "))
	return nil
}

func shutDown(ctx context.Context, s *stage, story *story) error {
	if err := s.ledger(ctx, func(ledger *store.Store) error {
		checks, err := ledger.Diagnose(ctx) // the ledger and its lists first
		if err == nil && checks[0].Severity != job.Fine {
			err = fmt.Errorf("%s: %v", checks[0].Summary, checks[0].Details)
		}
		return err
	}); err != nil {
		return err
	}
	story.say("the ledger and its lists agree")
	if err := s.ShutDown(ctx); err != nil {
		return err
	}
	if _, err := s.NoneLeft(ctx); err != nil {
		return err
	}
	story.say("SIGTERM: drained and ended; no process remains")
	return nil
}
