package api

import (
	"context"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	"github.com/holdfast-jobs/holdfast/api/resolve"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const keyHeader = "Idempotency-Key"

// submitRoutes accept jobs, one by one.
type submitRoutes struct {
	jobs     Jobs
	guard    *guard.Guard
	resolver *resolve.Resolver
	memory   *intake.Memory
	maxBytes int64 // of a submission
	cell     job.Cell
	log      *slog.Logger
}

func (s *submitRoutes) add(r *router) {
	add(r, "POST /jobs", "submit-job", guard.Submit, s.submit, accepts, takesBody)
}

// submitInput has no body. The package submission reads the body in one pass, where
// huma would decode it into a tree.
type submitInput struct {
	call
	Key string `header:"Idempotency-Key" doc:"Same as idempotencyKey in the body. Bare, or quoted as a structured field's string."`
}

type submitOutput struct {
	Location string `header:"Location" doc:"Where to see the job."`
	Body     v1.Accepted
}

func (s *submitRoutes) submit(ctx context.Context, in *submitInput) (*submitOutput, error) {
	share := s.memory.Share()
	defer share.Release()
	header := in.request.Header
	if mediaType(header) != mediaJSON {
		return nil, problem(http.StatusUnsupportedMediaType,
			"send JSON, with the header Content-Type: application/json and no Content-Encoding")
	}
	body, err := intake.ReadBody(in.request, s.maxBytes, share)
	if err != nil {
		return nil, err
	}
	item := submission.Parse(body, 1)
	s.mergeKey(&item, header.Values(keyHeader))
	wanted, err := s.admit(ctx, item, traceOf(header))
	if err != nil {
		return nil, err
	}
	if err := in.take(ctx, s.guard, guard.Jobs, 1); err != nil {
		return nil, err
	}
	receipt, err := s.jobs.Submit(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return &submitOutput{Location: "/jobs/" + receipt.ID.String(), Body: v1.AcceptedOf(receipt)}, nil
}

// mergeKey uses the idempotency key of the header. It must agree with the key in the
// body. In a cell, the body may not have one alone.
func (s *submitRoutes) mergeKey(item *submission.Item, fields []string) {
	key, err := submission.KeyOf(fields)
	switch {
	case err != nil:
	case key == "":
		s.refuseHiddenKey(item)
	case item.IdempotencyKey != "" && key != item.IdempotencyKey:
		err = errors.New("differs from idempotencyKey in the body")
	default:
		item.IdempotencyKey = key
	}
	if err != nil {
		item.Mistakes = append(item.Mistakes, at("header."+keyHeader, err.Error()))
	}
}

// refuseHiddenKey refuses a key of which no header tells. A proxy chooses a cell by what it
// sees, so a repeated request could reach another cell, and make another job.
func (s *submitRoutes) refuseHiddenKey(item *submission.Item) {
	if _, some := s.cell.Number(); some && item.IdempotencyKey != "" {
		item.Mistakes = append(item.Mistakes, at(submission.Pointer("idempotencyKey"),
			"must be in the header Idempotency-Key: this is a cell, and its proxy does not see keys in the body"))
	}
}

// admit makes a job of what a client sent. An error refuses it; its locations lie within
// the submission.
func (s *submitRoutes) admit(ctx context.Context, item submission.Item, trace job.Trace) (job.Submission, error) {
	return s.resolver.Item(ctx, s.jobs, item, guard.Tenant(ctx), trace)
}

// mediaType returns the declared media type of a body, or empty if the body is
// compressed or not in UTF-8. It is strict: a page of another site can make a browser
// send requests without the header.
func mediaType(header http.Header) string {
	media, parameters := header.Get("Content-Type"), map[string]string(nil)
	if media != mediaJSON {
		var err error
		if media, parameters, err = mime.ParseMediaType(media); err != nil {
			return ""
		}
	}
	charset := strings.ToLower(parameters["charset"])
	encoding := strings.ToLower(header.Get("Content-Encoding"))
	if (charset != "" && charset != "utf-8") || (encoding != "" && encoding != "identity") {
		return ""
	}
	return media
}
