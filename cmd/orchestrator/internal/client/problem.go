package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Problem is an answer that refuses (RFC 9457).
type Problem struct {
	Status int     `json:"status"`
	Title  string  `json:"title"`
	Detail string  `json:"detail"`
	Errors []Fault `json:"errors"`
	// RetryAfter is how long to wait before another try; zero when the server
	// does not say.
	RetryAfter time.Duration `json:"-"`
	// Advice says what to do about it; empty when there is nothing to say.
	Advice string `json:"-"`
}

// Fault is one mistake in a request: a JSON Pointer into the body, or a name
// such as query.limit, and what is wrong there.
type Fault struct {
	Location string `json:"location"`
	Message  string `json:"message"`
}

// Error is the detail, then a line for each fault.
func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = strings.ToLower(p.Title)
	}
	lines := []string{text}
	for _, fault := range p.Errors {
		lines = append(lines, "  "+fault.Location+": "+fault.Message)
	}
	if p.RetryAfter > 0 && p.Status == http.StatusTooManyRequests {
		lines = append(lines, fmt.Sprintf("  Try again in %s.", p.RetryAfter))
	}
	if p.Advice != "" {
		lines = append(lines, "  "+p.Advice)
	}
	return strings.Join(lines, "\n")
}

// maxProblemBytes bounds what is read of an answer that may come from anybody.
const maxProblemBytes = 1 << 20

func problemOf(answer *http.Response, login Login) *Problem {
	problem := &Problem{}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxProblemBytes))
	if json.Unmarshal(text, problem) != nil || problem.Status == 0 {
		problem = &Problem{Detail: "the server answers " + answer.Status}
	}
	problem.Status = answer.StatusCode
	if problem.Detail == "" && problem.Title == "" {
		problem.Title = "status " + strconv.Itoa(answer.StatusCode)
	}
	if location := answer.Header.Get("Location"); location != "" && answer.StatusCode/100 == 3 {
		problem.Detail = "the server redirects to " + location + ", which is not followed"
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		problem.RetryAfter = time.Duration(seconds) * time.Second
	}
	problem.Advice = login.advice(answer.StatusCode)
	return problem
}
