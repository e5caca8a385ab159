package v1

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Problem is every answer that is not a success (RFC 9457). Its type is
// about:blank, which is left out.
type Problem struct {
	Title  string    `json:"title" doc:"The status in words."`
	Status int       `json:"status" doc:"The HTTP status code."`
	Detail string    `json:"detail" doc:"What is wrong, for people."`
	Errors []Mistake `json:"errors,omitempty" nullable:"false" doc:"Each place that is wrong, if the problem has places. Values that you sent are not repeated."`
	// RetryAfter is the header of that name; zero for none.
	RetryAfter time.Duration `json:"-"`
}

// Mistake is one place that is wrong.
type Mistake struct {
	Message  string `json:"message" doc:"What is wrong there, for people."`
	Location string `json:"location" doc:"A JSON Pointer into the body, such as #/tags/1; or path.id, query.limit, header.Idempotency-Key."`
}

// ProblemMedia is the media type of a problem.
const ProblemMedia = "application/problem+json"

// NewProblem returns a problem with the title of its status.
func NewProblem(status int, detail string, mistakes ...Mistake) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: detail, Errors: mistakes}
}

// Invalid is the answer to a request that can be read but not accepted.
func Invalid(mistakes ...Mistake) *Problem {
	return NewProblem(http.StatusUnprocessableEntity, "validation failed", mistakes...)
}

// retryAfter is sent with most problems of status 503. It is long enough for a
// failover to make progress, and short enough that nobody notices a restart.
const retryAfter = 2 * time.Second

// Unavailable is the answer to a request that may succeed if it is repeated.
func Unavailable(detail string) *Problem {
	p := NewProblem(http.StatusServiceUnavailable, detail)
	p.RetryAfter = retryAfter
	return p
}

func (p *Problem) Error() string { return p.Detail }

// Places says what is wrong at each place, for people; empty for a problem without places.
func (p *Problem) Places() string {
	var all []string
	for _, mistake := range p.Errors {
		all = append(all, mistake.Location+" "+mistake.Message)
	}
	return strings.Join(all, "; ")
}

// maxExplained is how many mistakes Below names.
const maxExplained = 5

// Below says on one line what is wrong, for people who do not see the answer: the body is
// the part of something larger at the place, a JSON Pointer.
func (p *Problem) Below(place string) string {
	if len(p.Errors) == 0 {
		return place + ": " + p.Detail
	}
	var all []string
	for _, mistake := range p.Errors[:min(len(p.Errors), maxExplained)] {
		all = append(all, place+strings.TrimPrefix(mistake.Location, "#")+" "+mistake.Message)
	}
	if more := len(p.Errors) - maxExplained; more > 0 {
		all = append(all, "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(all, "; ")
}

// GetStatus is called by the server's router, which writes an error as an answer. So are
// GetHeaders and ContentType.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns Retry-After, if it is set.
func (p *Problem) GetHeaders() http.Header {
	if p.RetryAfter == 0 {
		return nil
	}
	return http.Header{"Retry-After": {strconv.Itoa(int(p.RetryAfter.Seconds()))}}
}

// ContentType returns ProblemMedia.
func (p *Problem) ContentType(string) string { return ProblemMedia }
