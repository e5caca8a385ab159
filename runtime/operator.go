package runtime

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

const (
	// operateBusy is how soon to look again for an operation that is due, but that another
	// process works on.
	operateBusy = 250 * time.Millisecond
	// maxOperateFailures is how many portions of an operation may fail in a row. They are tried
	// later and later, over three minutes.
	maxOperateFailures = 20
	// maxOperateError bounds the text that is kept of an error.
	maxOperateError = 500
	// forgetOperationsEvery is how often old operations are looked for.
	forgetOperationsEvery = time.Hour
)

// operator acts on the jobs of operations. It runs in every process that maintains; an operation is
// worked on by one at a time, a portion each, and taken on by another where the last one ended.
type operator struct {
	cfg    Config
	store  Store
	jobs   *jobs.Service
	forgot time.Time
}

func (o *operator) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause, err := o.operate(ctx)
		if err == nil {
			err = o.forget(ctx)
		}
		if err != nil && ctx.Err() == nil {
			o.cfg.Log.Warn("an operation could not go on; trying again", slog.Any("error", err))
			pause = loop.Jittered(time.Second)
		}
		o.jobs.Operating.Sleep(ctx, pause)
	}
}

// operate does a portion, and returns how long to wait for the next one.
func (o *operator) operate(ctx context.Context) (time.Duration, error) {
	try, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	began := time.Now()
	done, found, err := o.store.OperateNext(try)
	if err != nil || found {
		o.jobs.Metrics.Batch(metrics.OpOperate, done.Found, began, err)
	}
	switch {
	case err != nil:
		return 0, o.postpone(ctx, err)
	case found:
		o.jobs.Operated(ctx, done, began)
		if done.Operation.FinishedAt != nil {
			o.cfg.Log.Info("operation finished", "operation_id", done.Operation.ID.String(), "action", string(done.Operation.Action),
				"jobs", done.Operation.Done, "by", done.Operation.By)
		}
		return 0, nil
	}
	in, ok, err := o.store.OperationDue(try)
	switch {
	case err != nil:
		return 0, err
	case ok && in == 0:
		return loop.Jittered(operateBusy), nil
	}
	return min(pauseUntil(in, ok), o.untilForget()), nil
}

// postpone puts off the operation that an error is about, so that others go on.
func (o *operator) postpone(ctx context.Context, err error) error {
	var of *job.OperationError
	if !errors.As(err, &of) || ctx.Err() != nil {
		return err
	}
	try, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	failed, postponed := o.store.PostponeOperation(try, of.ID, job.CleanText(of.Err.Error(), maxOperateError), maxOperateFailures)
	if failed {
		o.cfg.Log.Error("operation failed", "operation_id", of.ID.String(), "error", of.Err)
	}
	return errors.Join(err, postponed)
}

// untilForget is how long it is until old operations are looked for; 0 if that is due.
func (o *operator) untilForget() time.Duration {
	return max(time.Until(o.forgot.Add(forgetOperationsEvery)), 0)
}

// forget deletes old operations.
func (o *operator) forget(ctx context.Context) error {
	if o.untilForget() > 0 {
		return nil
	}
	try, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err := o.store.ForgetOperations(try, job.OperationsKept)
	if err == nil {
		o.forgot = time.Now()
	}
	return err
}
