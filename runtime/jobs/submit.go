package jobs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

// Submit stores a job, durably unless its type is fast, in one insert with
// whatever else is being submitted, and wakes a claimer, or the admitter if the job has
// gates to pass. Errors: job.ErrKeyReused,
// job.ErrBadData, job.ErrUnavailable, or the context's, and job.ErrOutcomeUnknown
// with either if the job may have been stored.
func (s *Service) Submit(ctx context.Context, one job.Submission) (job.Receipt, error) {
	s.prepare(&one)
	sent := s.Spans.Send(ctx, &one)
	receipt, err := s.submitter.submit(ctx, one)
	sent.Done(job.Submitted{Receipt: receipt, Err: err})
	return receipt, err
}

// Accept makes a job of a submission that a handler or a schedule of the tenant wants, as
// POST /jobs would: it is checked, and every default, id and gate is filled in. Nothing is
// stored. If the submission is refused, the error is a *v1.Problem of package api/v1;
// others are job.ErrUnavailable and the context's.
func (s *Service) Accept(ctx context.Context, text []byte, tenant string, trace job.Trace) (job.Submission, error) {
	if s.cfg.Accept == nil {
		return job.Submission{}, errors.New("this process accepts no submissions from inside")
	}
	one, err := s.cfg.Accept(ctx, s, text, tenant, trace)
	if err != nil {
		return job.Submission{}, err
	}
	s.prepare(&one)
	return one, nil
}

// Known reports whether the submission's key has already created a job of the same type
// and payload.
func (s *Service) Known(ctx context.Context, submission job.Submission) (bool, error) {
	return s.store.Known(ctx, submission)
}

// SubmitEach is Submit for each of the jobs, which are stored together. Of several
// with the same key, the first counts.
func (s *Service) SubmitEach(ctx context.Context, batch []job.Submission) []job.Submitted {
	batch = s.prepared(batch)
	sent := s.Spans.SendAll(ctx, batch)
	results := s.submitter.submitEach(ctx, batch)
	for i, one := range sent {
		one.Done(results[i])
	}
	return results
}

// SubmitAll stores all of the jobs or none, and wakes a claimer. Nothing is
// stored when any of the results has an error. Errors are those of Submit.
func (s *Service) SubmitAll(ctx context.Context, batch []job.Submission) ([]job.Submitted, error) {
	batch = s.prepared(batch)
	sent := s.Spans.SendAll(ctx, batch)
	began := time.Now()
	results, err := s.store.SubmitAll(ctx, batch)
	sent.Done(results, err)
	s.Metrics.Batch(metrics.OpSubmit, len(batch), began, err)
	if err == nil {
		s.Submitted(batch, results)
	}
	return results, err
}

// prepared is a copy of the batch: the caller's own stays as it is.
func (s *Service) prepared(batch []job.Submission) []job.Submission {
	batch = slices.Clone(batch)
	for i := range batch {
		s.prepare(&batch[i])
	}
	return batch
}

// prepare fills in what the configuration and the rules of this moment say.
func (s *Service) prepare(one *job.Submission) {
	one.Fast = one.Fast || s.fast(one.Type)
	one.Gates = s.Rules().Gates(one.Type, one.Tenant, one.Terms)
	if one.CallbackURL == "" && s.cfg.CallbackURL != nil {
		one.CallbackURL = s.cfg.CallbackURL(one.Type)
	}
	one.Followed = one.Followed || one.CallbackURL != "" || s.cfg.Events.Records(one.Type)
}

func (s *Service) fast(jobType string) bool { return s.cfg.Fast != nil && s.cfg.Fast(jobType) }
