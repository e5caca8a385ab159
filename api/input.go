package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	"github.com/holdfast-jobs/holdfast/api/submission"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// call is embedded in the input of every operation. It has what the router does not
// decode. It refuses a query parameter that is misspelled, empty or not for this
// operation: if a filter were ignored, the answer would contain everything. For the same
// reason it refuses a body that the operation would not read. A parameter with a maxLength
// is a word, with the same characters as in a submission.
type call struct {
	request *http.Request
	answer  http.ResponseWriter
	query   url.Values
}

// Resolve is called by the router before the operation.
func (c *call) Resolve(ctx huma.Context) []error {
	c.request, c.answer = humachi.Unwrap(ctx)
	errs := c.strayBody(ctx.Operation())
	if c.request.URL.RawQuery == "" {
		return errs
	}
	var err error
	if c.query, err = url.ParseQuery(c.request.URL.RawQuery); err != nil {
		return append(errs, &huma.ErrorDetail{Location: "query", Message: "cannot be read"})
	}
	for _, name := range slices.Sorted(maps.Keys(c.query)) {
		if message := mistakeIn(c.query[name], parameterOf(ctx.Operation(), name)); message != "" && len(errs) < submission.MaxMistakes {
			errs = append(errs, &huma.ErrorDetail{Location: "query." + submission.Shortened(name), Message: message})
		}
	}
	return errs
}

// maxEmptyBody is the length up to which a body may say nothing. Some clients send an empty
// object with every POST.
const maxEmptyBody = 64

// strayBody refuses what a request that changes something has in a body that the operation
// does not read.
func (c *call) strayBody(operation *huma.Operation) []error {
	if operation.Method == http.MethodGet || operation.Metadata[withBody] == true || c.request.ContentLength == 0 {
		return nil
	}
	if c.request.ContentLength <= maxEmptyBody {
		text, err := io.ReadAll(io.LimitReader(c.request.Body, maxEmptyBody+1))
		var members map[string]json.RawMessage
		if err == nil && (len(bytes.TrimSpace(text)) == 0 || json.Unmarshal(text, &members) == nil && len(members) == 0) {
			return nil
		}
	}
	var names []string
	for _, parameter := range operation.Parameters {
		if parameter.In == "query" {
			names = append(names, parameter.Name)
		}
	}
	slices.Sort(names)
	message := operation.Method + " " + operation.Path + " takes no body"
	if len(names) > 0 {
		message += ": send query parameters, which are " + strings.Join(names, ", ")
	}
	return []error{&huma.ErrorDetail{Location: "#", Message: message}}
}

func mistakeIn(values []string, parameter *huma.Param) string {
	switch {
	case parameter == nil:
		return "is not known"
	case slices.Contains(values, ""):
		return "must not be empty"
	case len(values) > 1 && !*parameter.Explode:
		return "is duplicated"
	case parameter.Schema.MaxLength != nil:
		if err := submission.CheckWord(values[0], *parameter.Schema.MaxLength); err != nil {
			return err.Error()
		}
	}
	return ""
}

func parameterOf(operation *huma.Operation, name string) *huma.Param {
	for _, parameter := range operation.Parameters {
		if parameter.In == "query" && parameter.Name == name {
			return parameter
		}
	}
	return nil
}

// nextPage is the Link header for the page after the cursor.
func (c *call) nextPage(cursor string) string {
	if cursor == "" {
		return ""
	}
	if c.query == nil {
		c.query = url.Values{}
	}
	c.query.Set("cursor", cursor)
	return "<" + (&url.URL{Path: c.request.URL.Path, RawQuery: c.query.Encode()}).String() + `>; rel="next"`
}

// decoded undoes the encoding that the router leaves in a part of the path.
func (c *call) decoded(part string) string {
	if c.request.URL.RawPath != "" {
		if decoded, err := url.PathUnescape(part); err == nil {
			return decoded
		}
	}
	return part
}

// allowTime extends the server's deadline for writing the answer by the time that an
// operation may take on top of the usual.
func (c *call) allowTime(extra time.Duration) {
	if timeout := intake.ServerOf(c.request).WriteTimeout; timeout > 0 {
		// A writer that is no connection has no deadline.
		_ = http.NewResponseController(c.answer).SetWriteDeadline(time.Now().Add(extra + timeout))
	}
}

// take counts n against a rate limit of the caller, and adds the remaining quota to
// the answer's header. It returns an error, which is the answer, if n do not fit.
func (c *call) take(ctx context.Context, g *guard.Guard, limit guard.Limit, n int) error {
	allowance := g.Take(ctx, limit, n)
	maps.Copy(c.answer.Header(), allowance.Header)
	if !allowance.Allowed {
		return problem(http.StatusTooManyRequests, allowance.Detail)
	}
	return nil
}

// mayTake refuses a caller whose rate limit is used up. It counts nothing, for
// requests whose number of jobs is not known yet.
func (c *call) mayTake(ctx context.Context, g *guard.Guard, limit guard.Limit) error {
	if allowance := g.Look(ctx, limit); !allowance.Allowed {
		maps.Copy(c.answer.Header(), allowance.Header)
		return problem(http.StatusTooManyRequests, allowance.Detail)
	}
	return nil
}

// tenantOf returns the tenant that a list is for: the caller's own if it is bound
// to one, else the requested one. Other tenants do not exist for a bound caller.
func tenantOf(ctx context.Context, requested string) (string, error) {
	bound := guard.Tenant(ctx)
	switch {
	case bound == "":
		return requested, nil
	case requested != "" && requested != bound:
		return "", problem(http.StatusNotFound, "no such tenant")
	}
	return bound, nil
}

// body is the output of operations that answer with a body alone.
type body[T any] struct{ Body T }

// bodyOf makes an output of what a port returned.
func bodyOf[From, To any](found From, err error, convert func(From) To) (*body[To], error) {
	if err != nil {
		return nil, err
	}
	return &body[To]{convert(found)}, nil
}

// jobInput names a job.
type jobInput struct {
	call
	ID job.ID `path:"id" format:"uuid" doc:"The jobId that the submission returned."`
}

// timeParam is an instant.
type timeParam struct{ time.Time }

// UnmarshalText accepts RFC 3339.
func (p *timeParam) UnmarshalText(text []byte) error {
	// A filter has the zero time for none.
	if p.Time.UnmarshalText(text) != nil || p.IsZero() {
		return errors.New("must be an RFC 3339 time, such as 2030-01-31T12:00:00Z")
	}
	return nil
}

// idParam is the id of a job.
type idParam struct{ job.ID }

// UnmarshalText refuses the id of no job, which a filter has for none.
func (p *idParam) UnmarshalText(text []byte) error {
	if p.ID.UnmarshalText(text) != nil || p.ID == (job.ID{}) {
		return errors.New("must be the id of a job")
	}
	return nil
}

const (
	usualLimit    = 100
	maxLimit      = 1000
	maxMinutes    = 24 * 60
	recentMinutes = 5
)

// limitParam is how many items a client wants at most. A number outside the bounds
// is clamped, not refused.
type limitParam struct{ n int }

// UnmarshalText accepts whole numbers of any length.
func (p *limitParam) UnmarshalText(text []byte) (err error) {
	p.n, err = clamped(text, maxLimit)
	return err
}

// Schema describes the limit.
func (limitParam) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Default: usualLimit}
}

func (p limitParam) value() int {
	if p.n == 0 {
		return usualLimit
	}
	return p.n
}

// minutesParam is how far to look back; 0 if the request has none. It is clamped
// like a limit.
type minutesParam struct{ n int }

// UnmarshalText accepts whole numbers of any length.
func (p *minutesParam) UnmarshalText(text []byte) (err error) {
	p.n, err = clamped(text, maxMinutes)
	return err
}

// Schema describes the minutes. It has no bounds, since no number is refused.
func (minutesParam) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeInteger} }

// recentParam is how far back metrics look.
type recentParam struct{ minutesParam }

// Schema describes the minutes.
func (recentParam) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Default: recentMinutes}
}

// clamped reads a whole number and brings it into 1..highest.
func clamped(text []byte, highest int) (int, error) {
	n, err := strconv.Atoi(string(text)) // A number with too many digits becomes the nearest int.
	if errors.Is(err, strconv.ErrSyntax) || text[0] == '+' {
		return 0, errors.New("not a whole number")
	}
	return min(max(n, 1), highest), nil
}
