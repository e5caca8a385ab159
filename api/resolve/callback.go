package resolve

import (
	"context"
	"errors"

	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// checkCallback refuses deliveries, which nobody may submit because they are signed, and a
// callback URL that nobody could tell.
func checkCallback(ctx context.Context, jobs Jobs, wanted job.Submission) error {
	if wanted.Type == job.DeliveryType {
		return v1.Invalid(mistake(submission.Pointer("jobType"),
			"is the type of deliveries, which only Holdfast makes; set callbackUrl on the job whose end is to be told"))
	}
	if wanted.CallbackURL == "" {
		return nil
	}
	_, err := jobs.TypeSpec(ctx, job.DeliveryType)
	if errors.Is(err, job.ErrUnknownType) {
		return v1.Invalid(mistake(submission.Pointer("callbackUrl"),
			"cannot be told: no plugin has declared the job type "+job.DeliveryType+"; an operator must configure the built-in plugin"))
	}
	return err
}
